"""The documented names for type checkers; at run time each is imported when it is first used."""

from inspector.compat.devtools.compare import compare_results as compare_results
from inspector.compat.devtools.delegated_graph import (
    format_delegated_graph as format_delegated_graph,
)
from inspector.compat.devtools.delegated_graph import get_delegated_payload as get_delegated_payload
from inspector.compat.devtools.delegated_graph import print_delegated_graph as print_delegated_graph
from inspector.compat.devtools.delegation_info import DelegationBreakdown as DelegationBreakdown
from inspector.compat.devtools.delegation_info import DelegationInfo as DelegationInfo
from inspector.compat.devtools.delegation_info import get_delegation_info as get_delegation_info
from inspector.compat.devtools.delegation_info import print_delegation_info as print_delegation_info
from inspector.compat.devtools.etrecord import ETRecord as ETRecord
from inspector.compat.devtools.etrecord import generate_etrecord as generate_etrecord
from inspector.compat.devtools.etrecord import parse_etrecord as parse_etrecord
from inspector.compat.devtools.event import Event as Event
from inspector.compat.devtools.event_block import EventBlock as EventBlock
from inspector.compat.devtools.inspector import Inspector as Inspector
from inspector.compat.devtools.memory_trace import generate_memory_trace as generate_memory_trace
from inspector.compat.devtools.numerical_comparator import L1Comparator as L1Comparator
from inspector.compat.devtools.numerical_comparator import MSEComparator as MSEComparator
from inspector.compat.devtools.numerical_comparator import (
    NumericalComparatorBase as NumericalComparatorBase,
)
from inspector.compat.devtools.numerical_comparator import SNRComparator as SNRComparator
from inspector.compat.devtools.perf_data import PerfData as PerfData
from inspector.compat.devtools.size_information import (
    generate_model_size_information as generate_model_size_information,
)
from inspector.compat.devtools.tensors import MissingTensor as MissingTensor
from inspector.compat.devtools.time_scale import TimeScale as TimeScale
from inspector.rebuild.serde_rewrite import RebuildError as RebuildError
from inspector.render.table_result import table as table
