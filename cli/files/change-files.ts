// box files mkdir, mv and rm: change directories of a box.

import type { JsonOption, QuietOption } from '../arguments/options.ts'
import type { Session } from '../connection/session.ts'
import { startBatch } from '../output/batch.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printStderr, sanitize } from '../output/print.ts'
import { isDirectory, makeDirectory, moveEntry, removeEntry } from './requests.ts'

type Output = JsonOption & QuietOption

function report({ json, quiet }: Output, result: unknown, line: string): void {
  if (json) printJson(result)
  else if (!quiet) printStderr(sanitize(line))
}

/** Returns the exit code. */
export async function makeDirectories(
  { client }: Session,
  name: string,
  paths: readonly string[],
  options: Output & { parents?: boolean },
): Promise<number> {
  const edge = await client.createEdgeClient(name)
  const batch = startBatch(paths)
  await batch.run(paths, async (typed) => {
    const result = await makeDirectory(edge, typed, options.parents ?? false)
    report(options, result, `${result.path}: ${result.created ? 'created' : 'exists'}`)
  })
  return batch.exitCode
}

/** Into the destination, as `mv` does, when that is a directory. Returns the exit code. */
export async function moveEntries(
  { client }: Session,
  name: string,
  paths: readonly string[],
  options: Output & { force?: boolean },
): Promise<number> {
  const sources = paths.slice(0, -1)
  const destination = paths.at(-1) ?? ''
  if (sources.length === 0)
    throw new CliError(EXIT.usage, 'The destination is missing: `box files mv NAME SOURCE... DESTINATION`.')
  const edge = await client.createEdgeClient(name)
  const isInto = await isDirectory(edge, destination)
  if (!isInto && (sources.length > 1 || destination.endsWith('/')))
    throw new CliError(EXIT.notFound, `${sanitize(destination)} is not a directory of ${sanitize(name)}.`)
  const batch = startBatch(sources)
  await batch.run(sources, async (from) => {
    const to = isInto ? `${destination.replace(/\/+$/, '')}/${getLastName(from)}` : destination
    const result = await moveEntry(edge, { from, to, overwrite: options.force ?? false })
    report(options, result, `${result.from}: moved to ${result.path}`)
  })
  return batch.exitCode
}

const getLastName = (path: string): string => path.replace(/\/+$/, '').replace(/^.*\//s, '')

/** Returns the exit code. */
export async function removeEntries(
  { client }: Session,
  name: string,
  paths: readonly string[],
  options: Output & { recursive?: boolean; force?: boolean },
): Promise<number> {
  const edge = await client.createEdgeClient(name)
  const batch = startBatch(paths)
  await batch.run(paths, async (typed) => {
    try {
      const { path } = await removeEntry(edge, typed, options.recursive ?? false)
      report(options, { path, removed: true }, `${path}: removed`)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      if (options.force && error.code === 'not_found')
        return report(options, { path: typed, removed: false }, `${typed}: no such file`)
      throw error.code === 'directory_not_empty' && !options.recursive
        ? new CliError(
            error.exitCode,
            `${sanitize(typed)} is not empty. Remove it with its content with -r. (${error.code})`,
            { code: error.code, cause: error },
          )
        : error
    }
  })
  return batch.exitCode
}
