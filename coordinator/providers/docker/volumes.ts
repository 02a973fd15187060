// The volumes of the machine of a box: its home and the state of its agent.
import { randomBytes } from 'node:crypto'
import { hasStatus, ignoreStatus } from '../engine-http/errors.ts'
import type { Engine } from './engine.ts'
import { removeRemainingHelpers, removeUnusedHelpers, withHelper } from './helper-container.ts'
import { createLabels, getHomeVolume, getStateVolume, LABELS } from './names.ts'
import { readSmallFile } from './read-small-file.ts'

/** In the state volume of a machine that has been started: the id of its creation. An archive has that of another machine. */
export const CREATION_FILE = 'creation'
const MAX_CREATION_BYTES = 100

type Volume = { Labels?: Record<string, string> | null }

const listVolumes = (boxId: string): string[] => [getStateVolume(boxId), getHomeVolume(boxId)]

/** Creates empty volumes, and returns the id of their creation, which their labels have. */
export async function createVolumes({ http, deploymentId }: Engine, boxId: string): Promise<string> {
  const creationId = randomBytes(8).toString('hex')
  for (const name of listVolumes(boxId)) {
    const volume = await http.json<Volume>({
      method: 'POST',
      path: '/volumes/create',
      json: { Name: name, Labels: createLabels(deploymentId, 'machine', { boxId, creationId }) },
    })
    // The engine has done an earlier call late, which creates the volumes of its container.
    if (volume.Labels?.[LABELS.creation] !== creationId)
      throw new Error(`The volume ${name} exists already. The call is repeated.`)
  }
  return creationId
}

/** No-op when absent. */
export async function removeVolumes(engine: Engine, boxId: string): Promise<void> {
  await removeRemainingHelpers(engine)
  for (const name of listVolumes(boxId)) {
    if ((await findVolume(engine, name)) === null) continue
    const remove = () =>
      engine.http.json({ method: 'DELETE', path: `/volumes/${name}` }).catch(ignoreStatus(404))
    await remove().catch(async (error: unknown) => {
      // A helper remains when the engine or the coordinator was killed during a call.
      if (!hasStatus(error, 409)) throw error
      await removeUnusedHelpers(engine)
      await remove()
    })
  }
}

/** The id of the creation of the state volume. undefined: there is none, or it has no id. */
export async function findCreation(engine: Engine, boxId: string): Promise<string | undefined> {
  return (await findVolume(engine, getStateVolume(boxId)))?.Labels?.[LABELS.creation]
}

/**
 * Returns the id of the creation when the volumes belong to a machine that has been started: they have all files. null: there are
 * no volumes, or their machine was never complete.
 */
export async function findStartedCreation(engine: Engine, boxId: string): Promise<string | null> {
  const creationId = await findCreation(engine, boxId)
  if (creationId === undefined || (await findVolume(engine, getHomeVolume(boxId))) === null) return null
  const mounts = [{ volume: getStateVolume(boxId), path: '/state' }]
  const written = await withHelper(engine, mounts, (helper) =>
    readSmallFile(engine, helper, `/state/${CREATION_FILE}`, MAX_CREATION_BYTES),
  )
  return written === creationId ? creationId : null
}

/** Returns null for a volume that does not belong to this coordinator. */
async function findVolume({ http, deploymentId }: Engine, name: string): Promise<Volume | null> {
  const volume = await http.json<Volume>({ method: 'GET', path: `/volumes/${name}` }).catch(ignoreStatus(404))
  return volume?.Labels?.[LABELS.coordinator] === deploymentId ? volume : null
}
