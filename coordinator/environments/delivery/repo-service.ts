// The repositories of a box for clients: their states, and the request to update them.
import type { BoxRepo } from '../../../shared/api/environments.ts'
import { type Clock, toTimestamp } from '../../../shared/clock.ts'
import { recordBoxChange } from '../../audit/record-change.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRepoRow } from '../../db/schema.ts'
import { transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import type { BoxFinder } from '../../http/find-box.ts'
import { recordDelivery } from './delivery-changes.ts'
import { listBoxRepos, requestRepoUpdates } from './store.ts'

export type BoxRepoServiceOptions = {
  db: Db
  clock: Clock
  finder: Pick<BoxFinder, 'find' | 'lockLive'>
}

/** Both functions throw not_found for a box that the actor may not see. */
export type BoxRepoService = {
  list(actor: Actor, boxId: string): Promise<BoxRepo[]>
  /** Repositories that are being cloned or updated are not updated a second time. A box that does not run is updated when it does. */
  update(actor: Actor, boxId: string): Promise<BoxRepo[]>
}

export function createBoxRepoService({ db, clock, finder }: BoxRepoServiceOptions): BoxRepoService {
  return {
    async list(actor, boxId) {
      await finder.find(actor, boxId)
      return (await listBoxRepos(db, boxId)).map(presentBoxRepo)
    },
    update: (actor, boxId) =>
      transaction(db, async (trx) => {
        const box = await finder.lockLive(trx, actor, boxId)
        const now = clock.now()
        await requestRepoUpdates(trx, boxId, now)
        recordBoxChange(trx, 'box.repos_update', box, { actor, now })
        recordDelivery(trx, { boxId, content: 'repos' })
        return (await listBoxRepos(trx, boxId)).map(presentBoxRepo)
      }),
  }
}

const presentBoxRepo = ({ repo, path, ref, state, commit_id, error, updated_at }: BoxRepoRow): BoxRepo => ({
  repo,
  path,
  ref,
  state,
  commit: commit_id,
  error,
  updatedAt: toTimestamp(updated_at),
})
