"""What comes back fits what went in, and shows itself without a label."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import labeldp as ldp
from labeldp.accounts.explanation import explain, panel

BOUNDS = (0.0, 50.0)
PAY = pd.Series([12.0, 31.5, 49.0], index=["ann", "bo", "cy"], name="pay")
RELEASE = ldp.privatize(PAY, epsilon=1.0, bounds=BOUNDS)


def test_a_series_keeps_library_index_and_name_and_none_of_its_values():
    back = RELEASE.to_series(like=PAY * np.nan)
    assert back.equals(pd.Series(RELEASE.labels, index=PAY.index, name="pay"))
    assert np.array_equal(RELEASE.to_series(like=PAY, debiased=True), RELEASE.debiased)
    assert RELEASE.to_series(like=pl.Series("pay", PAY.to_numpy())).equals(pl.Series("pay", RELEASE.labels))
    assert RELEASE.to_series(like=pa.chunked_array([[1, 2, 3]])).equals(pa.array(RELEASE.labels))
    assert RELEASE.to_series(like=PAY.to_numpy()) is RELEASE.labels
    model = ldp.LabelReleaseRegressor(epsilon=2.0, bounds=BOUNDS, rounds=1, trust="local")
    model.fit(np.arange(6.0).reshape(3, 2), PAY.copy())
    assert list(model.release_.to_series(like=PAY).index) == list(PAY.index)
    assert np.array_equal(model.release_.to_series(like=PAY, debiased=True), model.release_.labels)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_several_label_columns_come_back_as_a_data_frame(kind):
    frame = pd.DataFrame({"pay": PAY, "rent": PAY / 2})
    like = {"pandas": frame, "polars": pl.from_pandas(frame), "arrow": pa.table(frame[["pay", "rent"]])}[kind]
    like = like.select(["pay", "rent"]) if kind == "arrow" else like
    several = ldp.privatize(frame, epsilon=1.0, bounds=[BOUNDS, BOUNDS])
    back = several.to_series(like=like)
    assert type(back) is type(like)
    assert np.array_equal(np.column_stack([back["pay"], back["rent"]]), several.labels)


@pytest.mark.parametrize(
    ("like", "error"), [(PAY[:2], "shape"), ([1, 2, 3], "got list"), (PAY.to_frame().T, "shape")]
)
def test_what_does_not_fit_is_refused(like, error):
    with pytest.raises(ldp.errors.ParameterError, match=error):
        RELEASE.to_series(like=like)


class Text(HTMLParser):
    """Collects text, and open tags."""

    def __init__(self):
        super().__init__()
        self.open, self.said, self.tags = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.said.append(data)


def read(html):
    text = Text()
    text.feed(html)
    text.close()
    assert not text.open, "a tag is not closed"
    return text


def test_a_release_and_both_regressors_show_what_was_done_and_what_it_cost_and_no_label():
    X, y = np.arange(240.0).reshape(120, 2), np.full(120, 31.4159)
    shown = [RELEASE, ldp.ModelReleaseRegressor(epsilon=0.5, bounds=BOUNDS).fit(X, y)]
    shown.append(ldp.LabelReleaseRegressor(epsilon=0.5, bounds=BOUNDS, rounds=1).fit(X, y.copy()))
    for thing in [*shown, shown[-1].release_]:
        said = " ".join(read(thing._repr_html_()).said)
        assert "0 to 50" in said
        assert "ε = " in said
        assert "31.4" not in said
    assert shown[1]._repr_mimebundle_()["text/html"] == shown[1]._repr_html_()
    assert "ModelReleaseRegressor(" in shown[1]._repr_html_()
    assert repr(RELEASE) == "<Release of 3 labels, ε = 1, secure>"
    assert "sk-" in ldp.ModelReleaseRegressor(epsilon=1.0, bounds=BOUNDS)._repr_html_(), "scikit-learn's diagram"


@pytest.mark.filterwarnings("ignore::labeldp.InsecureRandomnessWarning")
def test_a_seeded_release_shows_first_that_it_is_not_private():
    said = read(ldp.privatize(PAY, epsilon=1.0, bounds=BOUNDS, random_state=0)._repr_html_()).said
    assert said[1].startswith("NOT PRIVATE")


def test_text_in_a_panel_is_escaped():
    hostile = '<script>alert(1)</script> & "quoted"'
    about = {"file": {"name": hostile}}
    text = read(panel(explain(RELEASE.terms, "release", about), {hostile: hostile}, code=hostile))
    assert "script" not in text.tags
    assert text.said.count(hostile) == 3
