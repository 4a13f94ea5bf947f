"""Record what MindSpore's pipelines give: ``python dataset_pipeline.py`` in an environment that has it.

The cases are expressions over the names of :func:`scope`, so that the test evaluates the same ones.
``dataset_pipeline.json`` holds for each its value, or ``"refused"`` if MindSpore raises.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_suffix(".json")

CASES = r"""
values(R(6))
[values(R(7, num_shards=3, shard_id=i)) for i in range(3)]
[values(R(7, num_shards=3, shard_id=i, num_samples=2)) for i in range(3)]
[R(7, num_shards=3, shard_id=i).get_dataset_size() for i in range(3)]
values(R(6, num_samples=4))
values(R(6, num_samples=40)), R(6, num_samples=40).get_dataset_size()
R(7, num_shards=3)
R(7, num_shards=3, shard_id=3)
values(R(5).take(3)), R(5).take(3).get_dataset_size(), values(R(5).take(-1)), values(R(5).take(9))
R(5).take(0)
R(5).take(-2)
values(R(5).skip(3)), R(5).skip(3).get_dataset_size(), values(R(5).skip(9)), R(5).skip(9).get_dataset_size()
R(5).skip(-1)
values(R(3).repeat(2)), R(3).repeat(2).get_dataset_size(), R(3).repeat(2).get_repeat_count()
R(3).repeat(2).repeat(3).get_repeat_count(), R(3).repeat(2).batch(2).get_repeat_count(), R(3).get_repeat_count()
R(5).repeat(-1).get_dataset_size(), R(5).repeat().get_repeat_count()
R(5).repeat(0)
values(R(3).batch(2).repeat(2)), values(R(3).repeat(2).batch(2))
values(R(3).skip(1).repeat(2).take(3))
rows(zip_((R(3), N({"b": [5, 6]}))))
zip_((R(3), N({"b": [5, 6]}))).get_col_names(), zip_((R(3), N({"b": [5, 6]}))).get_dataset_size()
rows(R(3).zip(N({"b": [5, 6]})))
values(R(3).zip(R(3)))
zip_((R(3),))
zip_(R(3))
values(R(3) + R(2)), values(R(3).concat(R(2))), values(R(3).concat([R(2), R(1)])), (R(3) + R(2)).get_dataset_size()
values(R(3) + N({"b": [5, 6]}))
values(R(1) + N({"a": [5.5, 6]}))
values(R(6).filter(lambda x: x % 2 == 0)), values(R(6).filter(lambda x: bool(x % 2 == 0), ["a"]))
R(6).filter(lambda x: x % 2 == 0).get_dataset_size()
values(R(6).filter(lambda x: True, ["q"]))
values(R(6).filter(lambda x: 1 / 0))
rows(XYZ().filter(lambda x, y, z: x > 1))
rows(XYZ().project(["y", "x"])), XYZ().project("y").get_col_names()
values(XYZ().project(["q"]))
values(XYZ().project(["x", "x"]))
XYZ().rename(["y"], ["w"]).get_col_names(), XYZ().rename("y", "w").get_col_names()
values(XYZ().rename("q", "w"))
values(XYZ().rename("x", "y"))
rows(XYZ().rename(["x", "y"], ["y", "x"]))
XYZ().rename(["x", "y"], ["y"])
[values(x) for x in R(10).split([0.7, 0.3], randomize=False)]
[values(x) for x in R(10).split([0.75, 0.25], randomize=False)]
[values(x) for x in R(10).split([6, 4], randomize=False)]
[values(x) for x in R(10).split([0.33, 0.33, 0.34], randomize=False)]
[values(x) for x in R(10).map(lambda a: a * 2).split([0.5, 0.5], randomize=False)]
[values(x) for x in R(10).batch(2).split([3, 2], randomize=False)]
R(10).split([6, 3])
R(10).split([0.5, 0.3])
R(10).split([0.01, 0.99])
R(10).split([-1, 11])
R(10).shuffle(1)
sorted(values(R(10).shuffle(4)))
XYZ().output_shapes(), types(XYZ()), XYZ().batch(2).output_shapes(), types(XYZ().batch(2))
XYZ().get_batch_size(), XYZ().batch(2).get_batch_size(), XYZ().batch(2).repeat(2).get_batch_size()
R(7).batch(3).get_dataset_size(), R(7).batch(3, True).get_dataset_size(), R(7).batch(30).output_shapes()
R(7).batch(30, True).get_dataset_size(), values(R(7).batch(30, True))
values(R(7).batch(3, True)), values(R(7).batch(3))
R(7).batch(0)
R(7).batch(-2)
R(7).batch(2.5)
values(R(6).batch(lambda info: info.get_batch_num() + 1))
values(ragged([2, 3]).batch(2))
values(mixed_types().batch(2))
values(words().batch(2))
values(R(6).batch(4, per_batch_map=lambda a, info: ([x * 2 for x in a],), input_columns=["a"]))
values(R(6).batch(4, per_batch_map=lambda a, info: ([x + info.get_batch_num() for x in a],)))
rows(XYZ().batch(2, per_batch_map=lambda x, i: (np.stack(x), np.stack(x) * 2), input_columns=["x"], output_columns=["p", "q"]).project(["p", "q", "y", "z"]))
values(ragged([2, 3]).padded_batch(2, pad_info={}))
values(ragged([2, 3]).padded_batch(2, pad_info={"a": ([5], 7)}))
values(ragged([2, 3]).padded_batch(2, pad_info={"a": ([2], 7)}))
values(ragged([2, 3]).padded_batch(2, pad_info={"a": (None, 7)}))
values(ragged([2, 3]).padded_batch(2))
values(ragged([2, 3]).padded_batch(2, pad_info={"q": ([2], 7)}))
values(ragged([2, 3, 1]).padded_batch(2, True, pad_info={}))
values(ragged(range(1, 9)).bucket_batch_by_length(["a"], [3, 6], [2, 2, 2], pad_info={"a": ([8], 0)}))
values(ragged(range(1, 9)).bucket_batch_by_length(["a"], [3, 6], [2, 2, 2], element_length_function=lambda x: len(x), pad_info={}))
values(ragged(range(1, 9)).bucket_batch_by_length(["a"], [3, 6], [2, 2, 2]))
values(ragged(range(1, 6)).bucket_batch_by_length(["a"], [3, 6], [2, 2, 2], pad_info={"a": ([None], 3)}, pad_to_bucket_boundary=True))
values(ragged(range(1, 9)).bucket_batch_by_length(["a"], [3, 6], [2, 2, 2], pad_info={}, drop_remainder=True))
values(ragged([1, 2]).bucket_batch_by_length(["a"], [6, 3], [2, 2, 2]))
values(ragged([1, 2]).bucket_batch_by_length(["a"], [3, 6], [2, 2]))
rows(XYZ().map(lambda a: a * 2))
rows(XYZ().map(lambda a, b: (a * 2, b), ["x", "y"]))
rows(XYZ().map(lambda a, b: b * a, ["x", "y"], ["c"]))
rows(XYZ().map(lambda a: (a, a), ["x"], ["c", "d"]))
rows(XYZ().map(lambda a: (a, a + 1), ["z"], ["c", "d"]))
XYZ().map(lambda a: (a, a), ["z"], ["c", "d"]).get_col_names(), XYZ().map(lambda a: a, ["y"], ["c"]).get_col_names()
rows(XYZ().map(lambda a, b: (a, b, b), ["y", "x"], ["p", "q", "r"]))
rows(XYZ().map(lambda a, b: (a, b), ["y", "x"]))
rows(XYZ().map([lambda a: a + 1, lambda a: a * 10], ["x"]))
types(XYZ().map(lambda a: 3, ["x"])), types(XYZ().map(lambda a: 2.5, ["x"])), values(XYZ().map(lambda a: [1, 2], ["x"]))
rows(XYZ().map(lambda a, b: a, ["x", "y"]))
rows(XYZ().map(lambda a: None, ["x"]))
rows(XYZ().map(lambda a: a, ["q"]))
rows(XYZ().map(lambda a: 1 / 0, ["x"]))
XYZ().map([3], ["x"])
rows(N([1, 2, 3])), types(N([1, 2, 3])), types(N([1.5])), N([1]).get_col_names()
rows(N((np.arange(3), np.arange(3) * 2.0))), N(([1], [2])).get_col_names()
rows(N([[1, 2], [3, 4]])), rows(N(np.arange(6).reshape(3, 2))), rows(N([(1, 2), (3, 4)]))
rows(N({"x": [1, 2], "y": [[1, 2], [3, 4]]})), types(N({"x": np.arange(2, dtype=np.float32)}))
rows(N(["a", "b"])), rows(N({"x": ["p", "q"]}))
N({"x": [1, 2], "y": [1, 2, 3]})
N(([1, 2], [3, 4]), column_names=["a"])
rows(N(([1, 2], [3, 4]), column_names=["a", "b"]))
[list(x) for x in zip(*rows(XYZ(), ["z", "x"]))]
rows(XYZ(), ["q"])
XYZ().create_tuple_iterator(num_epochs=0)
values(R(4).apply(lambda d: d.batch(2))), values(R(3).flat_map(lambda a: R(int(a) + 1)))
types(G([(1, 2.5, "s", True, np.float32(1), np.array([1, 2], np.uint8))], list("abcdef")))
rows(G([1, 2, 3], ["a"])), rows(G([(1, 2.5), (2, 3.5)], ["a", "b"])), rows(G([[1, 2], [3, 4]], ["a", "b"]))
rows(G([([1, 2], [3.0, 4])], ["a", "b"]))
rows(G([[1, 2]], ["a"]))
rows(G([(1, 2)], ["a"]))
rows(G([np.array([1, 2])], ["a", "b"]))
rows(G([None], ["a"]))
G([1])
G(3, ["a"])
G([1], ["a", "a"])
rows(G(generator, ["a", "b"])), rows(G(generator, ["a", "b"], num_samples=2)), rows(G(generator(), ["a", "b"]))
twice(G(generator, ["a", "b"])), twice(G(generator(), ["a", "b"])), twice(G(Numbers(), ["a"]))
G(generator, ["a", "b"]).get_dataset_size(), G(Numbers(), ["a"]).get_dataset_size()
G(generator, ["a", "b"], sampler=ds.SequentialSampler())
G(generator, ["a", "b"], num_shards=2, shard_id=0)
rows(G(lambda: [(1,), (2,)], ["a"]))
rows(G([1, 2], ["a"], [int32]))
rows(G([], ["a"]))
rows(G(lambda: iter(()), ["a"]))
rows(G([1, 2, 3], ["a"], batch_sampler=[[0, 1], [2]]))
rows(G([1, 2, 3], ["a"], batch_sampler=[[0, 1], [2]], collate_fn=lambda s: np.array(s) * 2))
values(R(6, sampler=ds.SequentialSampler())), values(R(6, sampler=ds.SequentialSampler(2)))
values(R(6, sampler=ds.SequentialSampler(2, 2))), values(R(6, sampler=ds.SequentialSampler(2, 20)))
values(R(6, sampler=ds.SequentialSampler(9)))
values(R(6, sampler=ds.SubsetSampler([4, 1, 1]))), values(R(6, sampler=ds.SubsetSampler([4, 1, 5], 2))), values(R(6, sampler=ds.SubsetSampler(3)))
values(R(6, sampler=ds.SubsetSampler([9])))
values(R(6, sampler=ds.SubsetSampler([-1])))
sorted(values(R(6, sampler=ds.SubsetRandomSampler([4, 1, 2, 0])))), len(values(R(6, sampler=ds.SubsetRandomSampler([4, 1, 5], 2))))
sorted(values(R(6, sampler=ds.RandomSampler()))), len(values(R(6, sampler=ds.RandomSampler(True))))
len(values(R(6, sampler=ds.RandomSampler(False, 3)))), sorted(values(R(6, sampler=ds.RandomSampler(False, 9))))
set(values(R(6, sampler=ds.WeightedRandomSampler([0, 0, 1, 0, 0, 0], 4)))), sorted(values(R(6, sampler=ds.WeightedRandomSampler([0, 0, 1, 1, 0, 0], 2, False))))
len(values(R(6, sampler=ds.WeightedRandomSampler([1, 1, 1, 1, 0, 0])))), sorted(values(R(6, sampler=ds.WeightedRandomSampler([1, 1], 2, False))))
values(R(2, sampler=ds.WeightedRandomSampler([1, 1, 1, 1, 0, 0], 2, False)))
[values(R(7, sampler=ds.DistributedSampler(3, i, False))) for i in range(3)]
[[values(R(7, sampler=ds.DistributedSampler(3, i, False, offset=o))) for i in range(3)] for o in range(-1, 4)]
[values(R(7, sampler=ds.DistributedSampler(3, i, False, 2))) for i in range(3)], [values(R(2, sampler=ds.DistributedSampler(4, i, False))) for i in range(4)]
sorted(x for i in range(3) for x in values(R(6, sampler=ds.DistributedSampler(3, i, True))))
values(R(6, sampler=Own())), values(R(6, sampler=Own(2))), R(6, sampler=Own()).get_dataset_size()
values(R(6, sampler=[5, 0])), values(R(6, sampler=(5, 0))), values(R(6, sampler=np.array([5, 0]))), values(R(6, sampler=range(3))), values(R(6, sampler=iter([1, 2])))
R(6, sampler=3)
R(6, sampler=ds.SequentialSampler(), shuffle=True)
R(6, sampler=ds.SequentialSampler(), num_shards=2, shard_id=0)
R(6, sampler=ds.SequentialSampler(), num_samples=2)
values(R(8, sampler=under(ds.SubsetSampler([1, 0]), ds.SubsetSampler([5, 6, 7]))))
R(6, sampler=ds.PKSampler(1))
""".strip().splitlines()  # noqa: E501


def scope(ds: Any, int32: Any) -> dict[str, Any]:
    """The names that the cases use, for one of the two libraries."""

    def plain(value: Any) -> Any:
        return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value

    def rows(data: Any, columns: Any = None) -> list[Any]:
        if columns is not None:
            found = data.create_tuple_iterator(columns, num_epochs=1, output_numpy=True)
            return [[plain(x) for x in row] for row in found]
        found = data.create_dict_iterator(num_epochs=1, output_numpy=True)
        return [[[name, plain(x)] for name, x in row.items()] for row in found]

    def values(data: Any) -> list[Any]:
        return [plain(row[0]) for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]

    def generator() -> Any:
        for i in range(4):
            yield np.array([i], np.float32), i

    class Numbers:
        def __iter__(self) -> Any:
            return iter([(1,), (2,)])

    class Own(ds.Sampler):  # type: ignore[misc]
        def __iter__(self) -> Any:
            yield from [3, 1, 2]

    def under(upper: Any, lower: Any) -> Any:
        upper.add_child(lower)
        return upper

    def slices(data: Any, **keywords: Any) -> Any:
        if "sampler" not in keywords and "shuffle" not in keywords:
            keywords["shuffle"] = False
        return ds.NumpySlicesDataset(data, **keywords)

    def of(source: Any, *positional: Any, **keywords: Any) -> Any:
        if isinstance(source, list) and "batch_sampler" not in keywords:
            keywords["shuffle"] = False
        return ds.GeneratorDataset(source, *positional, **keywords)

    return {
        "np": np, "ds": ds, "int32": int32, "zip_": ds.zip, "N": slices, "G": of, "rows": rows, "values": values,
        "R": lambda n, **k: slices({"a": list(range(n))}, **k),
        "XYZ": lambda: slices({"x": [1, 2], "y": [[1, 2], [3, 4]], "z": [0, 5]}),
        "types": lambda data: [np.dtype(t).name for t in data.output_types()],
        "twice": lambda data: [rows(data), rows(data)],
        "generator": generator, "Numbers": Numbers, "Own": Own, "under": under,
        "ragged": lambda lengths: of([np.ones(n) for n in lengths], ["a"]),
        "mixed_types": lambda: of([np.zeros(2), np.zeros(2, np.int32)], ["a"]),
        "words": lambda: of(["a", "bcd", "e"], ["a"]),
    }  # fmt: skip


def as_json(value: Any) -> Any:
    """A value as JSON has it: tuples and sets are lists, other objects their class name."""
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    if isinstance(value, (list, tuple)):
        return [as_json(v) for v in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value if isinstance(value, (int, float, str, bool)) or value is None else "a dataset"


def record() -> None:
    """Evaluate every case and write the file."""
    import mindspore
    import mindspore.dataset as ds

    names, found = scope(ds, mindspore.int32), []
    for case in CASES:
        try:
            found.append(as_json(eval(case, names)))
        except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
            print(case, "->", str(error).splitlines()[0][:150], flush=True)
            found.append("refused")
    lines = [f"  {json.dumps(case)}: {json.dumps(value)}" for case, value in zip(CASES, found, strict=True)]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record()
