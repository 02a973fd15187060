// The first start makes the workspace, its owner's key and a first box: all of it, or none when it dies midway.
import { readFile } from 'node:fs/promises'
import { newApiKey } from '../shared/ids.ts'
import { createKeyFinder, ensureFirstWorkspace, hashOf, mintOwnerKey } from './account/keys.ts'
import type { Context } from './context.ts'
import { type DataFolder, writePrivately } from './data-folder.ts'
import { transaction } from './db/transaction.ts'
import type { Actor } from './http/actor.ts'

/**
 * Leaves an owner key in the data folder that works; later starts only make a new one when it is not there.
 * Returns who that key acts as, null when it was revoked or has expired.
 */
export async function ensureOwner(context: Context, folder: DataFolder): Promise<Actor | null> {
  const { db, clock, boxes, findKey, log } = context
  const keep = (key: string) => writePrivately(folder.ownerKey, `${key}\n`)
  await transaction(db, async (trx) => {
    const { apiKey } = await ensureFirstWorkspace({ db: trx, clock, newApiKey, keep })
    if (apiKey === undefined) return
    const found = await createKeyFinder({ db: trx, clock })(hashOf(apiKey))
    if ('actor' in found) await boxes.create(found.actor, {}, trx)
  })
  const found = await findKey(hashOf(await readKey(folder)))
  if ('actor' in found) return found.actor
  if (found.refused !== 'unknown') return null
  log.warn({ file: folder.ownerKey }, 'the file holds no key of this workspace: making a new owner key')
  const made = await findKey(hashOf(await mintOwnerKey({ db, clock, newApiKey, keep })))
  return 'actor' in made ? made.actor : null
}

async function readKey({ ownerKey }: DataFolder): Promise<string> {
  try {
    return (await readFile(ownerKey, 'utf8')).trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
