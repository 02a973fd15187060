// The files of the volumes of a box, as entries of an archive.
import { PassThrough, Readable } from 'node:stream'
import { AWS_TOKEN_PATH } from '../../../../shared/field-values.ts'
import { CONTAINER_PATHS } from '../../container/paths.ts'
import {
  encodeHeader,
  encodePadding,
  rewriteTar,
  TAR_TRAILER,
  type TarEntry,
  type TarReader,
} from '../../container/tar-entries.ts'
import { EngineStatusError } from '../../engine-http/errors.ts'
import { ArchiveError } from '../../provider.ts'
import type { Engine } from '../engine.ts'
import { getContainerName, getHomeVolume, getStateVolume } from '../names.ts'
import { openPodmanVolume } from './podman-volume.ts'

/** The directories of an archive that are volumes of the machine. */
export type VolumeRoot = 'home' | 'state'

const VOLUMES = { home: getHomeVolume, state: getStateVolume } as const

/** Yields the entries of a volume below `<root>/`, and adds the sizes of the files to `count`. */
export async function* readVolume(
  engine: Engine,
  boxId: string,
  root: VolumeRoot,
  count: (bytes: number) => void,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  const { source, mapOwner = (owner) => owner } = await openVolume(engine, boxId, root, signal)
  /** The name of the directory itself, which is first. */
  let directory: string | undefined
  try {
    yield* rewriteTar(source, (entry) => {
      directory ??= entry.type === 'directory' ? entry.name : ''
      const names = toArchiveNames(root, directory, entry)
      if (names === null) return null
      count(entry.size)
      return { ...mapOwner(entry), ...names }
    })
  } finally {
    source.on('error', () => {}).destroy()
  }
}

/** As in the archives of local boxes: a copy of the box must not have its token for AWS, and a backup would contain it. */
const TOKEN = AWS_TOKEN_PATH.replace('~', 'home')

/**
 * Returns the names of an entry in the archive; null: it is omitted.
 * @param directory the name of the directory of the volume in the stream
 */
export function toArchiveNames(
  root: VolumeRoot,
  directory: string,
  { type, name, linkName }: Pick<TarEntry, 'type' | 'name' | 'linkName'>,
): (Pick<TarEntry, 'name'> & Partial<Pick<TarEntry, 'linkName'>>) | null {
  // The box can create them again. Podman omits them too.
  if (type === 'device') return null
  const names = {
    name: joinName(root, directory, name),
    ...(type === 'hard link' && { linkName: joinName(root, directory, linkName) }),
  }
  return [names.name, names.linkName].some((path) => path === TOKEN || path === `${TOKEN}.new`) ? null : names
}

type Owner = { uid: number; gid: number }
type OpenVolume = { source: Readable; mapOwner?: (owner: Owner) => Owner }

async function openVolume(
  engine: Engine,
  boxId: string,
  root: VolumeRoot,
  signal: AbortSignal,
): Promise<OpenVolume> {
  const { http, kind } = engine
  // In a copy that Podman makes, all files belong to root.
  const local = kind === 'podman' ? await openPodmanVolume(engine, VOLUMES[root](boxId), signal) : null
  if (local !== null) return local
  // With the period, Docker names the directory `./`. Podman omits it, and names it `/` or `<name>/` without the period.
  const path = kind === 'docker' ? `${CONTAINER_PATHS[root]}/.` : CONTAINER_PATHS[root]
  const { body } = await http.stream({
    method: 'GET',
    path: `/containers/${getContainerName(boxId)}/archive`,
    query: { path },
    signal,
  })
  return { source: body }
}

/** Names are relative to the directory, or begin with its name. */
function joinName(root: string, directory: string, name: string): string {
  const relative = (name.startsWith(directory) ? name.slice(directory.length) : name).replace(
    /^(?:\.?\/)+/,
    '',
  )
  return relative === '' || relative === '.' ? `${root}/` : `${root}/${relative}`
}

/**
 * Writes the entries of a directory of an archive into a volume, until another directory follows in the stream. Returns the first
 * entry that follows, or null. An archive can contain anything: only files of the volume reach the engine.
 * @param helper a container that has only the volumes of the box, at `/<root>`
 */
export async function writeVolume(
  { http, kind }: Engine,
  helper: string,
  root: VolumeRoot,
  first: TarEntry,
  reader: TarReader,
  signal: AbortSignal | undefined,
): Promise<TarEntry | null> {
  // Docker refuses links that lead out of the directory, such as `../etc`. Podman does not find the volumes below `/`.
  const isWhole = kind === 'docker'
  const content = new PassThrough()
  const writing = http.json({
    method: 'PUT',
    path: `/containers/${helper}/archive`,
    query: { path: isWhole ? '/' : `/${root}` },
    headers: { 'content-type': 'application/x-tar' },
    content,
    signal,
    // The content ends with the archive.
    timeoutMs: null,
  })
  writing.catch((error: unknown) => content.destroy(error as Error))
  let next: TarEntry | null = first
  async function* select(): AsyncGenerator<Buffer> {
    for (; next !== null && getRoot(next.name) === root; next = await reader.next()) {
      const entry: TarEntry = next
      if (entry.type === 'device') continue
      const toName = (name: string) => (isWhole ? `${root}/${name}` : name === '' ? './' : name)
      yield encodeHeader(entry, {
        name: toName(stripRoot(root, entry.name)),
        ...(entry.type === 'hard link' && { linkName: toName(stripRoot(root, entry.linkName)) }),
      })
      yield* reader.readContent()
      yield encodePadding(entry.size)
    }
    yield TAR_TRAILER
  }
  const selected = Readable.from(select(), { objectMode: false })
  selected.on('error', (error) => content.destroy(error)).pipe(content)
  const failed = new Promise<never>((_, reject) => selected.once('error', reject))
  failed.catch(() => {})
  try {
    await Promise.race([writing, failed])
  } catch (error) {
    selected.destroy()
    if (error instanceof EngineStatusError)
      throw new Error(`The files of the box could not be written: ${error.reason}`, { cause: error })
    throw error
  }
  return next
}

export const getRoot = (name: string): string => name.split('/', 1)[0] ?? ''

/** Returns the name below the root, '' for the root. Throws ArchiveError for a name that leads elsewhere. */
export function stripRoot(root: string, name: string): string {
  const [first, ...rest] = name.replace(/\/$/, '').split('/')
  if (first !== root || rest.some((part) => part === '' || part === '.' || part === '..'))
    throw new ArchiveError(
      'The archive is not an archive of a box: it has a file outside of its directories.',
    )
  return rest.join('/')
}
