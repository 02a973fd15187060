// Collects the final reports of a box before its machine is stopped or destroyed.
import type { Logger } from 'pino'
import type { Region } from '../../../shared/tiers.ts'
import type { Tunnels } from '../../agents/tunnel/types.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { Provider } from '../../providers/provider.ts'

export type CollectReportsOptions = {
  providers: { inRegion(region: Region): Pick<Provider, 'inspect'> }
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
  { id: boxId, kind, region }: Pick<BoxRow, 'id' | 'kind' | 'region'>,
  { providers, tunnels, log }: CollectReportsOptions,
): Promise<void> {
  try {
    // Only the agent of a running machine connects.
    const isConnected = tunnels.current(boxId) !== undefined
    if (!isConnected && kind === 'machine') return
    if (!isConnected && (await providers.inRegion(region).inspect(boxId)) !== 'running') return
    await tunnels.flushReports(boxId, FLUSH_TIMEOUT_MS)
  } catch (err) {
    log.warn({ err, boxId }, 'failed to collect the final reports of a box before stopping it')
  }
}
