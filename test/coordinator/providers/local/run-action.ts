// Makes the calls of a fork or of a snapshot to a provider, as their jobs do. Can be repeated after an interruption.
import type { Provider } from '../../../../coordinator/providers/provider.ts'
import { createMachineSpec } from './support.ts'

export type Action = 'fork' | 'snapshot'

/** The number of boxes that the action creates. */
export const NEW_BOXES: Record<Action, number> = { fork: 1, snapshot: 2 }

export const SNAPSHOT = { workspaceId: 'ws_1', archiveId: 'snp_1' }
const COPY = { workspaceId: 'ws_1', archiveId: 'snp_fork' }

export async function runAction(
  provider: Provider,
  boxId: string,
  action: Action,
  [first = '', second = '']: readonly string[],
): Promise<void> {
  const create = (id: string, source: typeof COPY) =>
    provider.create({ ...createMachineSpec(), boxId: id, source })
  if (action === 'fork') {
    // A complete machine needs no copy.
    if ((await provider.inspect(first)) === 'absent') await provider.copyMachine?.(boxId, COPY, null)
    await create(first, COPY)
    await provider.removeArchive(COPY)
    return
  }
  await provider.capture(boxId, SNAPSHOT, 'files', undefined, async () => {
    await create(first, SNAPSHOT)
  })
  for (const id of [first, second]) await create(id, SNAPSHOT)
}
