"""The documented names for type checkers; at run time each is imported when it is first used."""

from inspector.api.compare import compare_results as compare_results
from inspector.api.delegated_graph import format_delegated_graph as format_delegated_graph
from inspector.api.delegated_graph import get_delegated_payload as get_delegated_payload
from inspector.api.delegated_graph import print_delegated_graph as print_delegated_graph
from inspector.api.delegation_info import DelegationBreakdown as DelegationBreakdown
from inspector.api.delegation_info import DelegationInfo as DelegationInfo
from inspector.api.delegation_info import get_delegation_info as get_delegation_info
from inspector.api.delegation_info import print_delegation_info as print_delegation_info
from inspector.api.etrecord import ETRecord as ETRecord
from inspector.api.etrecord import generate_etrecord as generate_etrecord
from inspector.api.etrecord import parse_etrecord as parse_etrecord
from inspector.api.event import Event as Event
from inspector.api.event_block import EventBlock as EventBlock
from inspector.api.inspector import Inspector as Inspector
from inspector.api.memory_trace import generate_memory_trace as generate_memory_trace
from inspector.api.numerical_comparator import L1Comparator as L1Comparator
from inspector.api.numerical_comparator import MSEComparator as MSEComparator
from inspector.api.numerical_comparator import NumericalComparatorBase as NumericalComparatorBase
from inspector.api.numerical_comparator import SNRComparator as SNRComparator
from inspector.api.perf_data import PerfData as PerfData
from inspector.api.serde_rewrite import RebuildError as RebuildError
from inspector.api.size_information import (
    generate_model_size_information as generate_model_size_information,
)
from inspector.api.tensors import MissingTensor as MissingTensor
from inspector.api.time_scale import TimeScale as TimeScale
from inspector.render.table_result import table as table
