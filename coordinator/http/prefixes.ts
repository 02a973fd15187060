// Path prefixes of the two hosts.

export const CONTROL_PREFIX = '/api/v1'
export const EDGE_PREFIX = '/v1'
/** Between the edge's prefix and a route's path: the box, by name or id. */
export const EDGE_BASE = '/box/:box'
