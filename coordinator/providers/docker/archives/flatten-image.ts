// Creates images with a single layer, which has all files of another image or of a container.
import type { Engine } from '../engine.ts'
import { withHelperOf } from '../helper-container.ts'
import type { EngineImage } from '../images/images.ts'
import { createLabels } from '../names.ts'

/** Replaces the image. The new one has the same variables. */
export async function flattenImage(
  engine: Engine,
  reference: string,
  { environment }: EngineImage,
  signal: AbortSignal,
): Promise<void> {
  await withHelperOf(engine, reference, [], (name) =>
    importContainer(engine, name, reference, environment, signal),
  )
}

/** Creates an image from all files of a container. Its command and user have no meaning for boxes. */
export async function importContainer(
  { http, deploymentId }: Engine,
  container: string,
  reference: string,
  environment: readonly string[],
  signal?: AbortSignal,
): Promise<void> {
  const { body } = await http.stream({
    method: 'GET',
    path: `/containers/${container}/export`,
    signal,
    timeoutMs: null,
  })
  const query = new URLSearchParams({ fromSrc: '-', repo: reference })
  for (const change of formatChanges(environment, createLabels(deploymentId, 'archive')))
    query.append('changes', change)
  const lines = http.lines<{ error?: string }>({
    method: 'POST',
    path: `/images/create?${query}`,
    headers: { 'content-type': 'application/x-tar' },
    content: body,
    signal,
    timeoutMs: null,
  })
  for await (const { error } of lines)
    if (error !== undefined) throw new Error(`The layers of the box could not be merged: ${error}`)
}

/** The instructions of a Dockerfile. It has no way to write a line break in a value. */
function formatChanges(environment: readonly string[], labels: Record<string, string>): string[] {
  const variables = environment
    .filter((variable) => !variable.includes('\n') && variable.indexOf('=') > 0)
    .map((variable) => {
      const equals = variable.indexOf('=')
      const value = variable.slice(equals + 1).replace(/["\\$]/g, '\\$&')
      return `ENV ${variable.slice(0, equals)}="${value}"`
    })
  return [...variables, ...Object.entries(labels).map(([name, value]) => `LABEL ${name}=${value}`)]
}
