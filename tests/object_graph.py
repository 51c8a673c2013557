"""Walking everything that an object holds, to look for what it must not hold."""

import gc
import types

import numpy as np

OUTSIDE = (type, types.ModuleType, types.FrameType, types.BuiltinFunctionType)


def numbers_in(root):
    """Yield arrays of all the numbers that can be reached from an object, whatever holds them."""
    seen, waiting = {}, [root]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, OUTSIDE):
            continue
        seen[id(item)] = item  # kept, so that no id is used twice
        if isinstance(item, np.ndarray):
            if item.dtype.kind in "fiu":
                yield item.astype(np.float64).reshape(-1)
            elif item.dtype.fields:
                waiting += [item[name] for name in item.dtype.fields]
            elif item.dtype == object:
                waiting += item.reshape(-1).tolist()
            waiting.append(item.base)
        elif isinstance(item, bool | str | bytes | None):
            continue
        elif isinstance(item, int | float | np.number):
            try:
                yield np.array([float(item)])
            except OverflowError:
                continue
        elif isinstance(item, types.FunctionType):
            waiting += [item.__defaults__, item.__kwdefaults__, item.__closure__]
        else:
            waiting += gc.get_referents(item)
            if not gc.is_tracked(item) or type(item).__module__.startswith("sklearn.tree"):
                waiting += _state(item)


def _state(item):
    """Return what an object of a compiled type would be pickled as."""
    try:
        return [item.__reduce_ex__(4)[1:]]
    except (TypeError, AttributeError, RecursionError):
        return []


def secrets_of(y, bounds):
    """Return {name: number} of labels and of statistics that nothing public may hold."""
    low, high = bounds
    share = (y - low) / (high - low)
    named = {f"label {k}": value for k, value in enumerate(y)}
    named |= {f"label {k} as a share": value for k, value in enumerate(share)}
    named |= {f"label {k}, centred": value for k, value in enumerate(y - y.mean())}
    for name, function in {
        "mean": np.mean,
        "sum": np.sum,
        "median": np.median,
        "variance": np.var,
        "deviation": np.std,
        "squares": lambda v: float(v @ v),
    }.items():
        named[name] = function(y)
        named[f"{name} of shares"] = function(share)
    return named


def secrets_inside(root, secrets):
    """Return the names of secrets that an object holds, up to a relative difference of 1e-11."""
    names, values = list(secrets), np.array(list(secrets.values()))
    order = np.argsort(values)
    ranked = values[order]
    found = set()
    for part in numbers_in(root):
        numbers = part[np.isfinite(part)]
        for side in (0, -1):
            place = np.clip(np.searchsorted(ranked, numbers) + side, 0, ranked.size - 1)
            hit = np.abs(ranked[place] - numbers) <= 1e-11 * np.abs(ranked[place])
            found |= {names[order[k]] for k in place[hit]}
    return found
