// What a killed coordinator, or an engine that did not answer, has left in the engine. Volumes and networks of boxes are not
// here: the calls for a box find them by their names, and a container that another program has removed leaves files of a user.
import type { EngineArchives } from './archives/archives.ts'
import type { Engine } from './engine.ts'
import { removeUnusedHelpers } from './helper-container.ts'

/** Removes what no running call uses. Objects without the labels of this coordinator remain. */
export async function removeLeftovers(
  engine: Engine,
  archives: Pick<EngineArchives, 'removeUnusedImages'>,
): Promise<void> {
  await removeUnusedHelpers(engine)
  await archives.removeUnusedImages()
}
