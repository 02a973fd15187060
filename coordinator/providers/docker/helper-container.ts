// A container that is never started, with one exception: the engine reads and writes the files of its volumes. A link in a volume leads at most to
// another of its volumes, which are of one box.
import { randomBytes } from 'node:crypto'
import { hasStatus, ignoreStatus } from '../engine-http/errors.ts'
import type { Engine } from './engine.ts'
import { createLabels, filterByLabels } from './names.ts'

/** An image without files. */
const EMPTY_IMAGE = 'localhost/boxwood/empty:latest'

/** The names of the containers of running calls, which are unique. */
const inUse = new Set<string>()

/** The engines that may have helpers of calls that have ended, because they did not answer. */
const withRemaining = new WeakSet<Engine>()

/** Removes the helpers that earlier calls could not remove. */
export async function removeRemainingHelpers(engine: Engine): Promise<void> {
  if (!withRemaining.has(engine)) return
  await removeUnusedHelpers(engine)
  withRemaining.delete(engine)
}

export type HelperMounts = readonly { volume: string; path: string }[]
export type HelperProgram = { command: readonly string[]; env: readonly string[] }

const NO_PROGRAM: HelperProgram = { command: ['/none'], env: [] }

/** Creates the container for the duration of a call, which gets its name. */
export async function withHelper<T>(
  engine: Engine,
  mounts: HelperMounts,
  work: (name: string) => Promise<T>,
): Promise<T> {
  await ensureEmptyImage(engine)
  return await withHelperOf(engine, EMPTY_IMAGE, mounts, work)
}

/** Runs a program of a volume in a container without network. Rejects when it fails. */
export async function runInHelper(
  engine: Engine,
  mounts: HelperMounts,
  program: HelperProgram,
): Promise<void> {
  await ensureEmptyImage(engine)
  const { http } = engine
  const run = async (name: string) => {
    await http.json({ method: 'POST', path: `/containers/${name}/start` })
    const path = `/containers/${name}/wait`
    const { StatusCode: status } = await http.json<{ StatusCode: number }>({ method: 'POST', path })
    if (status !== 0) throw new Error(`The program ${program.command[0]} has exited with status ${status}.`)
  }
  await withHelperOf(engine, EMPTY_IMAGE, mounts, run, program)
}

/** The container has the files of an image too. */
export async function withHelperOf<T>(
  engine: Engine,
  image: string,
  mounts: HelperMounts,
  work: (name: string) => Promise<T>,
  program = NO_PROGRAM,
): Promise<T> {
  await removeRemainingHelpers(engine)
  const name = `boxwood-helper-${randomBytes(8).toString('hex')}`
  inUse.add(name)
  try {
    await createHelper(engine, name, image, mounts, program)
    return await work(name)
  } finally {
    inUse.delete(name)
    await removeHelper(engine, name).catch((error: unknown) => {
      withRemaining.add(engine)
      throw error
    })
  }
}

async function createHelper(
  { http, deploymentId }: Engine,
  name: string,
  image: string,
  mounts: HelperMounts,
  { command, env }: HelperProgram,
): Promise<void> {
  await http.json({
    method: 'POST',
    path: '/containers/create',
    query: { name },
    json: {
      Image: image,
      Cmd: command,
      Env: env,
      Labels: createLabels(deploymentId, 'helper'),
      HostConfig: {
        NetworkMode: 'none',
        SecurityOpt: ['no-new-privileges'],
        Mounts: mounts.map(({ volume, path }) => ({
          Type: 'volume',
          Source: volume,
          Target: path,
          VolumeOptions: { NoCopy: true },
        })),
      },
    },
  })
}

/** The volumes with names remain. */
export async function removeHelper({ http }: Engine, name: string): Promise<void> {
  await http
    .json({ method: 'DELETE', path: `/containers/${name}`, query: { force: true, v: true } })
    .catch(ignoreStatus(404))
}

/** Removes the helpers of this coordinator that no running call uses. */
export async function removeUnusedHelpers(engine: Engine): Promise<void> {
  const containers = await engine.http.json<{ Names?: string[] | null }[]>({
    method: 'GET',
    path: '/containers/json',
    query: { all: true, filters: filterByLabels(createLabels(engine.deploymentId, 'helper')) },
  })
  for (const name of containers.flatMap(({ Names }) => Names ?? []).map((name) => name.replace(/^\//, '')))
    if (!inUse.has(name))
      await removeHelper(engine, name).catch((error: unknown) => {
        // Podman lists a container that it could not remove completely.
        if (!hasStatus(error, 409, 500)) throw error
        engine.log.warn({ err: error, name }, 'failed to remove a container; the next start tries again')
      })
}

async function ensureEmptyImage({ http }: Engine): Promise<void> {
  const existing = await http
    .json({ method: 'GET', path: `/images/${EMPTY_IMAGE}/json` })
    .catch(ignoreStatus(404))
  if (existing !== undefined) return
  await http.json({
    method: 'POST',
    path: '/images/create',
    // Podman ignores the parameter `tag` of an import.
    query: { fromSrc: '-', repo: EMPTY_IMAGE },
    headers: { 'content-type': 'application/x-tar' },
    // An empty tar archive.
    content: Buffer.alloc(1024),
  })
}
