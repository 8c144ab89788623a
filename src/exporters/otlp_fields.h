/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of OTLP that sonde writes, by field number: profiles of opentelemetry-proto 1.11
 * (package opentelemetry.proto.profiles.v1development, "development", so that it may change),
 * common, resource and metrics (v1).
 */
#pragma once

enum otlp_field {
	/* ProfilesData, and ExportProfilesServiceRequest, which has the same */
	OTLP_RESOURCE_PROFILES = 1,
	OTLP_DICTIONARY = 2,
	/* ProfilesDictionary: the first item of each table is empty, and stands for "none" */
	OTLP_MAPPINGS = 1,
	OTLP_LOCATIONS = 2,
	OTLP_FUNCTIONS = 3,
	OTLP_LINKS = 4,
	OTLP_STRINGS = 5,
	OTLP_ATTRIBUTES = 6,
	OTLP_STACKS = 7,
	/* ResourceProfiles, ResourceMetrics */
	OTLP_RESOURCE = 1,
	OTLP_SCOPES = 2,
	OTLP_RESOURCE_ATTRIBUTE = 1,
	/* ScopeProfiles, ScopeMetrics; InstrumentationScope */
	OTLP_SCOPE = 1,
	OTLP_SCOPE_ITEMS = 2,
	OTLP_SCOPE_NAME = 1,
	OTLP_SCOPE_VERSION = 2,
	/* Profile */
	OTLP_PROFILE_SAMPLE_TYPE = 1,
	OTLP_PROFILE_SAMPLES = 2,
	OTLP_PROFILE_TIME = 3,
	OTLP_PROFILE_DURATION = 4,
	OTLP_PROFILE_PERIOD_TYPE = 5,
	OTLP_PROFILE_PERIOD = 6,
	OTLP_PROFILE_ID = 7,
	/* ValueType */
	OTLP_TYPE = 1,
	OTLP_UNIT = 2,
	/* Sample */
	OTLP_SAMPLE_STACK = 1,
	OTLP_SAMPLE_ATTRIBUTES = 2,
	OTLP_SAMPLE_VALUES = 4,
	/* Mapping */
	OTLP_MAPPING_LIMIT = 2,
	OTLP_MAPPING_FILE = 4,
	OTLP_MAPPING_ATTRIBUTES = 5,
	/* Stack: locations, the leaf first */
	OTLP_STACK_LOCATIONS = 1,
	/* Location */
	OTLP_LOCATION_MAPPING = 1,
	OTLP_LOCATION_ADDRESS = 2,
	OTLP_LOCATION_LINES = 3,
	OTLP_LOCATION_ATTRIBUTES = 4,
	/* Line */
	OTLP_LINE_FUNCTION = 1,
	OTLP_LINE_NUMBER = 2,
	/* Function */
	OTLP_FUNCTION_NAME = 1,
	OTLP_FUNCTION_SYSTEM_NAME = 2,
	OTLP_FUNCTION_FILE = 3,
	/* KeyValueAndUnit (its key is a string's index) and KeyValue */
	OTLP_KEY = 1,
	OTLP_VALUE = 2,
	/* AnyValue */
	OTLP_VALUE_TEXT = 1,
	OTLP_VALUE_INT = 3,
	/* ExportMetricsServiceRequest */
	OTLP_RESOURCE_METRICS = 1,
	/* Metric */
	OTLP_METRIC_NAME = 1,
	OTLP_METRIC_DESCRIPTION = 2,
	OTLP_METRIC_UNIT = 3,
	OTLP_METRIC_GAUGE = 5,
	OTLP_METRIC_SUM = 7,
	/* Gauge, Sum */
	OTLP_POINTS = 1,
	OTLP_SUM_TEMPORALITY = 2,
	OTLP_SUM_IS_MONOTONIC = 3,
	/* AggregationTemporality */
	OTLP_CUMULATIVE = 2,
	/* NumberDataPoint */
	OTLP_POINT_START_TIME = 2,
	OTLP_POINT_TIME = 3,
	OTLP_POINT_DOUBLE = 4,
	OTLP_POINT_INT = 6,
	OTLP_POINT_ATTRIBUTES = 7,
};
