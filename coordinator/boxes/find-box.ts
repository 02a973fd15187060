// Finds the boxes that an actor may see.
import { BOX_NAME_PATTERN } from '../../shared/api/boxes.ts'
import { ApiError } from '../../shared/errors.ts'
import { isUuid } from '../../shared/uuid.ts'
import { lockBox } from '../db/lock-box.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow } from '../db/schema.ts'
import type { Actor } from '../http/actor.ts'
import type { BoxFinder } from '../http/find-box.ts'
import { canSee } from '../http/visibility.ts'
import { listBoxesById } from './store/box-lists.ts'
import { prepareBoxQueries } from './store/boxes.ts'

/** Rejects a box that is deleted or being deleted. */
function requireNotDeleted(row: BoxRow): BoxRow {
  if (row.desired_state !== 'terminated') return row
  throw new ApiError('not_found', `Box ${row.hostname} has been deleted. Use another box.`)
}

export function createBoxFinder(db: Db): BoxFinder {
  const queries = prepareBoxQueries(db)

  async function lock(trx: Parameters<BoxFinder['lock']>[0], actor: Actor, id: string): Promise<BoxRow> {
    assertId(id)
    return requireVisible(actor, await lockBox(trx, id), id)
  }

  return {
    async find(actor, id) {
      assertId(id)
      return requireVisible(actor, (await queries.byId(id))[0], id)
    },
    lock,
    lockLive: async (trx, actor, id) => requireNotDeleted(await lock(trx, actor, id)),
    async resolve(actor, nameOrId) {
      // No name is a UUID: a UUID has 36 characters, a name at most 32.
      const id = nameOrId.toLowerCase()
      const findByName = async () =>
        BOX_NAME_PATTERN.test(nameOrId) ? queries.byName(actor.workspaceId, nameOrId) : []
      const [row] = await (isUuid(id) ? queries.byId(id) : findByName())
      return requireNotDeleted(requireVisible(actor, row, nameOrId))
    },
    async listVisible(actor, ids) {
      const rows = await listBoxesById(db, ids)
      return rows.filter((row) => seesBox(actor, row)).map(({ id }) => id)
    },
  }
}

const seesBox = (actor: Actor, row: Pick<BoxRow, 'id' | 'workspace_id' | 'owner_user_id'>): boolean =>
  canSee(actor, { workspaceId: row.workspace_id, boxId: row.id, ownerUserId: row.owner_user_id })

function requireVisible(actor: Actor, row: BoxRow | undefined, nameOrId: string): BoxRow {
  if (row && seesBox(actor, row)) return row
  throw createNoSuchBoxError(nameOrId)
}

/** Names the box as the client did, unless the text is long or has spaces or control characters. */
function createNoSuchBoxError(
  nameOrId: string,
  hint = 'Check the name or id, and that this API key may access the box.',
): ApiError {
  if (!/^[^\p{C}\p{Z}]{1,64}$/u.test(nameOrId)) return new ApiError('not_found')
  return new ApiError('not_found', `No such box: ${nameOrId}. ${hint}`)
}

/** The control plane addresses boxes only by id (spec §1). */
function assertId(id: string): void {
  if (!isUuid(id))
    throw createNoSuchBoxError(
      id,
      'This route needs the id of the box: GET /api/v1/boxes lists names and ids.',
    )
}
