// Inserts a box under its requested name, or under a free one.
import { ApiError } from '../../shared/errors.ts'
import type { BoxRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import { pickFreeName } from './names.ts'
import { listLiveNames } from './store/box-lists.ts'
import { insertBox } from './store/boxes.ts'

export type NameChoice = {
  workspaceId: string
  /** undefined: a free name is chosen. */
  name: string | undefined
  /** This name is chosen if it is free; otherwise a fruit is chosen. */
  preferredName?: string | null
  random: () => number
}

export const createTakenError = (name: string): ApiError =>
  new ApiError('name_taken', `A box named ${name} already exists. Choose another name.`)

/** Relies on the unique index: of two concurrent inserts with the same name, one succeeds. Throws name_taken. */
export async function insertWithName(
  trx: Trx,
  { workspaceId, name, preferredName = null, random }: NameChoice,
  createRow: (hostname: string) => BoxRow,
): Promise<BoxRow> {
  if (name !== undefined) {
    const row = await insertBox(trx, createRow(name))
    if (!row) throw createTakenError(name)
    return row
  }
  const preferred = preferredName === null ? undefined : await insertBox(trx, createRow(preferredName))
  if (preferred) return preferred
  const taken = await listLiveNames(trx, workspaceId)
  for (;;) {
    const hostname = pickFreeName(taken, random())
    const row = await insertBox(trx, createRow(hostname))
    if (row) return row
    taken.add(hostname)
  }
}

/** Throws name_taken. The name may be taken later nevertheless. */
export async function assertNameIsFree(trx: Trx, workspaceId: string, name: string): Promise<void> {
  if ((await listLiveNames(trx, workspaceId)).has(name)) throw createTakenError(name)
}
