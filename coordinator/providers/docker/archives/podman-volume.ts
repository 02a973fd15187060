// Reads the directory of a volume of Podman on this machine, as `podman volume export` does: the API gives all files of a copy
// to root, and has no export of volumes in version 4.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { PassThrough, type Readable } from 'node:stream'
import { SYSTEM_PATH } from '../../parts/system-path.ts'
import { LIBPOD } from '../containers.ts'
import type { Engine } from '../engine.ts'

type IdMap = { container_id: number; host_id: number; size: number }[] | null

type Info = { host?: { idMappings?: { uidmap?: IdMap; gidmap?: IdMap } | null } }

const NOBODY = 65_534
const MAX_ERROR_LENGTH = 1000

/** Equal files make an equal stream. The box cannot replace the directory of its volume. */
const TAR = ['-c', '--format=pax', '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime']
  .concat(['--sort=name', '--numeric-owner', '--one-file-system'])
  .concat(['--xattrs', '--xattrs-include=user.*', '--xattrs-include=security.capability'])

/** Returns null where only the engine can read the files: it is on another machine, or this process is not root. */
export async function openPodmanVolume(
  { http }: Engine,
  volume: string,
  signal: AbortSignal,
): Promise<{
  source: Readable
  mapOwner(owner: { uid: number; gid: number }): { uid: number; gid: number }
} | null> {
  if (process.getuid?.() !== 0 || http.address.kind !== 'unix') return null
  const { Mountpoint: dir } = await http.json<{ Mountpoint?: string }>({
    method: 'GET',
    path: `/volumes/${volume}`,
    signal,
  })
  if (dir === undefined || !existsSync(dir)) return null
  const { host } = await http.json<Info>({ method: 'GET', path: `${LIBPOD}/info`, signal })
  const { uidmap = null, gidmap = null } = host?.idMappings ?? {}
  return {
    source: startTar(dir, signal),
    mapOwner: ({ uid, gid }) => ({ uid: toContainerId(uid, uidmap), gid: toContainerId(gid, gidmap) }),
  }
}

/** An engine of root has no map. */
function toContainerId(id: number, map: IdMap): number {
  if (map === null || map.length === 0) return id
  const range = map.find(({ host_id: first, size }) => id >= first && id < first + size)
  return range === undefined ? NOBODY : range.container_id + (id - range.host_id)
}

function startTar(dir: string, signal: AbortSignal): Readable {
  const child = spawn('tar', [...TAR, '-C', dir, '.'], {
    signal,
    killSignal: 'SIGKILL',
    env: { PATH: SYSTEM_PATH, LC_ALL: 'C' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const source = new PassThrough()
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(0, MAX_ERROR_LENGTH)
  })
  child.stdout.pipe(source, { end: false })
  child.on('error', (error) => source.destroy(error))
  child.on('close', (code) => {
    // Status 1: a file has changed meanwhile.
    if (code === 0 || code === 1) source.end()
    else source.destroy(new Error(`The files of the box could not be read: ${output}`))
  })
  source.on('close', () => child.kill('SIGKILL'))
  return source
}
