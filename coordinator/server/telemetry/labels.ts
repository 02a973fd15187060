// Labels of metrics and attributes of spans. Each has a bounded number of values.
import type { TunnelCall } from '../../agents/tunnel/types.ts'

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

export const getMethodLabel = (method = ''): string => (METHODS.has(method) ? method : 'other')

/** The first segment of the path: further segments contain ids. */
export const getTunnelRoute = ({ path }: Pick<TunnelCall, 'path'>): string =>
  /^\/[a-z-]{1,32}(?=[/?]|$)/.exec(path)?.[0] ?? 'unknown'
