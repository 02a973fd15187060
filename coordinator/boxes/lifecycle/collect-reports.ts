// Collects the final reports of a box before its machine is frozen, stopped or destroyed.
import type { Logger } from 'pino'
import type { Region } from '../../../shared/tiers.ts'
import type { Tunnels } from '../../agents/tunnel/types.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { Provider } from '../../providers/provider.ts'

export type CollectReportsOptions = {
  providers: { inRegion(region: Region): Pick<Provider, 'inspect'> }
  tunnels: Pick<Tunnels, 'current' | 'wait' | 'flushReports'>
  log: Pick<Logger, 'warn'>
  /** The agents may be reconnecting to a coordinator that has just started, until this value of `performance.now()`. */
  reconnectsUntil?: number
  signal?: AbortSignal
}

/** Bounds the wait for an agent that does not respond. Includes the time in which it reconnects after a failed connection. */
const FLUSH_TIMEOUT_MS = 5_000

/**
 * First waits for the agent, if the machine runs. A failure is logged: a box must stop without its reports too.
 * @throws the reason of the signal
 */
export async function collectReports(
  { id: boxId, kind, region }: Pick<BoxRow, 'id' | 'kind' | 'region'>,
  { providers, tunnels, log, reconnectsUntil = 0, signal }: CollectReportsOptions,
): Promise<void> {
  try {
    // Only the agent of a running machine connects.
    const isConnected = tunnels.current(boxId) !== undefined
    if (!isConnected && kind === 'machine') return
    if (!isConnected && (await providers.inRegion(region).inspect(boxId)) !== 'running') return
    const reconnectMs = reconnectsUntil - performance.now()
    if (!isConnected && reconnectMs > 0) await tunnels.wait(boxId, reconnectMs, signal)
    await tunnels.flushReports(boxId, FLUSH_TIMEOUT_MS)
  } catch (err) {
    signal?.throwIfAborted()
    log.warn({ err, boxId }, 'failed to collect the final reports of a box before stopping it')
  }
}
