// What a killed coordinator, or an engine that did not answer, has left in the engine. Volumes and networks of boxes are not
// here: the calls for a box find them by their names, and a container that another program has removed leaves files of a user.
import { hasStatus } from '../engine-http/errors.ts'
import type { EngineArchives } from './archives/archives.ts'
import type { Engine } from './engine.ts'
import { isHelperInUse, removeHelper } from './helper-container.ts'
import { createLabels, filterByLabels } from './names.ts'

/** Removes what no running call uses. Objects without the labels of this coordinator remain. */
export async function removeLeftovers(
  engine: Engine,
  archives: Pick<EngineArchives, 'removeUnusedImages'>,
): Promise<void> {
  await removeHelpers(engine)
  await archives.removeUnusedImages()
}

async function removeHelpers(engine: Engine): Promise<void> {
  const containers = await engine.http.json<{ Names?: string[] | null }[]>({
    method: 'GET',
    path: '/containers/json',
    query: { all: true, filters: filterByLabels(createLabels(engine.deploymentId, 'helper')) },
  })
  for (const name of containers.flatMap(({ Names }) => Names ?? []).map((name) => name.replace(/^\//, '')))
    if (!isHelperInUse(name))
      await removeHelper(engine, name).catch((error: unknown) => {
        // Podman lists a container that it could not remove completely.
        if (!hasStatus(error, 409, 500)) throw error
        engine.log.warn({ err: error, name }, 'failed to remove a container; the next start tries again')
      })
}
