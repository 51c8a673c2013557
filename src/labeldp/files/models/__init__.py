"""A fitted model in a folder: plain numbers and JSON, safe to open whoever sent it.

==================  =====================================================================================
``card.json``       the card: what the model cost and promises, and the hashes of the other files
``columns.json``    how a table's public columns become numbers
``model.npz``       the model's numbers, arrays without any Python object in them
``release.npz``     the private labels, if they were released too; `RowRelease.load` reads it
==================  =====================================================================================

Nothing is unpickled and nothing imported by name. A card that was changed, or files that do not belong to it, are
refused; so are numbers that do not make a model, even if whoever wrote them made the hashes fit.
"""

from labeldp.tabular.arrow import need_arrow

need_arrow()

from labeldp.files.models.load import SavedModel, load_model  # noqa: E402
from labeldp.files.models.save import model_folder, save_model  # noqa: E402

__all__ = ["SavedModel", "load_model", "model_folder", "save_model"]
