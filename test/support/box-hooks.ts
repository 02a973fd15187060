// The hooks of new boxes for tests that start only some parts: environments without files, and no secrets.
import type { BoxEnvironments, BoxSecrets } from '../../coordinator/boxes/box-hooks.ts'
import type { Db } from '../../coordinator/db/open.ts'
import { createEnvironments } from '../../coordinator/environments/box-environments.ts'
import { type Clock, systemClock } from '../../shared/clock.ts'

export const NO_BOX_SECRETS: BoxSecrets = {
  onCreate: async (_trx, box) => box.mount_vars,
  onOwnerChange: async () => undefined,
  listCarried: async () => [],
  mountForRepo: async () => ({ problem: 'there are no secrets' }),
}

export const createTestBoxHooks = (
  db: Db,
  clock: Clock = systemClock,
): { boxEnvironments: BoxEnvironments; boxSecrets: BoxSecrets } => ({
  boxEnvironments: createEnvironments({ db, clock, files: { read: async () => new Map() } }),
  boxSecrets: NO_BOX_SECRETS,
})
