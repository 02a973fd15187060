// Stops the machines that wait for a box without a coordinator.
import type { Region } from '../../shared/tiers.ts'
import type { Db } from '../db/open.ts'
import type { Provider } from '../providers/provider.ts'
import { listWarmMachines } from './store.ts'

/** A killed coordinator has left them. The next one removes them. */
export async function stopWarmMachines(
  db: Db,
  providers: { inRegion(region: Region): Pick<Provider, 'stop'> },
  host: string,
): Promise<void> {
  for (const { id, region } of await listWarmMachines(db, host)) await providers.inRegion(region).stop(id)
}
