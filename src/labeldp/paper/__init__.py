"""The paper's experiments, with mechanisms that are really private: ``labeldp paper --help``.

Uses the library as any user would; nothing imports it but the command line. It needs
``pip install 'labeldp[paper]'``.
"""
