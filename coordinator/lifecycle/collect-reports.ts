// Collects the final reports of a box before its machine is stopped or destroyed.
import type { Logger } from 'pino'
import type { Tunnels } from '../tunnel/types.ts'
import type { Provider } from './provider.ts'

export type CollectReportsOptions = {
  provider: Pick<Provider, 'inspect'>
  tunnels: Pick<Tunnels, 'current' | 'flushReports'>
  log: Pick<Logger, 'warn'>
}

/**
 * Bounds the wait for an agent that does not respond. Includes the time in which an agent reconnects after a restart of
 * the coordinator.
 */
const FLUSH_TIMEOUT_MS = 5_000

/** Never rejects: a box must stop without its reports too. */
export async function collectReports(
  boxId: string,
  { provider, tunnels, log }: CollectReportsOptions,
): Promise<void> {
  try {
    // Only the agent of a running machine connects.
    if (tunnels.current(boxId) === undefined && (await provider.inspect(boxId)) !== 'running') return
    await tunnels.flushReports(boxId, FLUSH_TIMEOUT_MS)
  } catch (err) {
    log.warn({ err, boxId }, 'failed to collect the final reports of a box before stopping it')
  }
}
