// The file-system view of a box with its own mount namespace: allow-listed host paths and the box's own directories.
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import type { Isolation } from '../../../shared/api/boxes.ts'
import { RUNTIME_FILES, RUNTIME_LINKS } from '../parts/runtime.ts'
import type { BoxPaths } from './machine-file.ts'
import { createResolvConf } from './network/resolv-conf.ts'

/**
 * `source` is a path on the host. `path` and `target` are paths in the box. `ro` and `rw` are bind mounts. A tmpfs is
 * empty and read-only.
 */
export type Mount =
  | { kind: 'ro'; source: string; path: string }
  | { kind: 'rw'; source: string; path: string }
  | { kind: 'symlink'; target: string; path: string }
  | { kind: 'tmpfs'; path: string }

/** Paths in the box. BoxPaths has the paths on the host. */
export const VIEW_PATHS = {
  home: '/home/box',
  state: '/var/lib/boxwood',
  runtime: '/run/boxwood/agent',
  node: '/run/boxwood/bin/node',
  init: `/run/boxwood/agent/${RUNTIME_LINKS.current}/${RUNTIME_FILES.init}`,
  agent: `/run/boxwood/agent/${RUNTIME_LINKS.current}/${RUNTIME_FILES.agent}`,
  /** The directory of the coordinator's socket. */
  socketDir: '/run/boxwood/coordinator',
} as const

/**
 * Returns the current runtime directory as a box of the level sees it.
 * @param hostDir the same directory on the host
 */
export const getRuntimeDirInBox = (level: Isolation['level'], hostDir: string): string =>
  level === 'process' ? hostDir : dirname(VIEW_PATHS.init)

/** The `rw` mounts of the view. */
export const WRITABLE_PATHS = ['/tmp', '/var/tmp', VIEW_PATHS.home, VIEW_PATHS.state]

/** The uid of the box user in a user namespace. */
export const MAPPED_UID = 1000

/** Directories of the host that a box sees read-only, where they exist. */
const SYSTEM_DIRS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix']
/** Files and directories of the host's /etc that a box sees read-only, where they exist. */
const ETC_ENTRIES = [
  'alternatives bash.bashrc bashrc bash_completion.d ca-certificates ca-certificates.conf crypto-policies',
  'debian_version default/locale environment.d fonts gai.conf gitconfig host.conf inputrc java-17-openjdk',
  'java-21-openjdk ld.so.cache ld.so.conf ld.so.conf.d locale.alias locale.conf localtime lsb-release magic',
  'mime.types networks nsswitch.conf os-release perl pki/ca-trust pki/tls/cert.pem pki/tls/certs profile',
  'profile.d protocols python3 redhat-release resolv.conf rpc services shells skel ssl/cert.pem ssl/certs',
  'ssl/openssl.cnf terminfo timezone vim xdg',
].flatMap((line) => line.split(' '))

export type MountListInput = {
  paths: BoxPaths
  /** The project directory and the data directory are hidden from the box. */
  projectRoot: string
  dataDir: string
  /** The current runtime directory on the host, which createRuntime returns. */
  runtimeDir: string
  /** The Node executable on the host. */
  nodePath: string
  /** The directory of the coordinator's socket on the host; null: the box does not need the socket. */
  socketDir: string | null
}

/** The mounts of the view, in mount order. The isolation level itself mounts the empty root, /proc and /dev. */
export function buildMountList({
  paths,
  projectRoot,
  runtimeDir,
  nodePath,
  dataDir,
  socketDir,
}: MountListInput): Mount[] {
  const mounts: Mount[] = []
  for (const path of SYSTEM_DIRS) {
    if (!existsSync(path)) continue
    if (lstatSync(path).isSymbolicLink()) mounts.push({ kind: 'symlink', target: readlinkSync(path), path })
    else mounts.push({ kind: 'ro', source: path, path })
  }
  mounts.push(...hideDirectories([projectRoot, dataDir]))
  const ownEtcFiles = readdirSync(paths.etc)
  for (const name of ETC_ENTRIES) {
    if (ownEtcFiles.includes(name)) continue
    const path = join('/etc', name)
    // Resolve symlinks: resolv.conf and localtime often link to files outside the view.
    if (existsSync(path)) mounts.push({ kind: 'ro', source: realpathSync(path), path })
  }
  for (const name of ownEtcFiles) {
    mounts.push({ kind: 'ro', source: join(paths.etc, name), path: join('/etc', name) })
  }
  const cpuDir = '/sys/devices/system/cpu'
  if (existsSync(cpuDir)) mounts.push({ kind: 'ro', source: cpuDir, path: cpuDir })
  mounts.push(
    // The directory has all versions, so that the init can start the agent of a later one.
    { kind: 'ro', source: dirname(runtimeDir), path: VIEW_PATHS.runtime },
    { kind: 'ro', source: realpathSync(nodePath), path: VIEW_PATHS.node },
    ...(socketDir === null ? [] : [{ kind: 'ro', source: socketDir, path: VIEW_PATHS.socketDir } as const]),
    { kind: 'symlink', target: '/run', path: '/var/run' },
    { kind: 'rw', source: paths.tmp, path: '/tmp' },
    { kind: 'rw', source: paths.varTmp, path: '/var/tmp' },
    { kind: 'rw', source: paths.home, path: VIEW_PATHS.home },
    { kind: 'rw', source: paths.state, path: VIEW_PATHS.state },
  )
  return mounts
}

const isInside = (path: string, dir: string): boolean => path === dir || path.startsWith(dir + sep)

/** Covers each directory that is a system directory, such as /opt, or inside one with a tmpfs. Otherwise a box could see it. */
function hideDirectories(dirs: string[]): Mount[] {
  const realDirs = [...new Set(dirs.map((dir) => realpathSync(dir)))]
  return (
    realDirs
      .filter((dir) => SYSTEM_DIRS.some((systemDir) => isInside(dir, systemDir)))
      // The tmpfs of a parent directory also hides its subdirectories.
      .filter((dir) => !realDirs.some((other) => other !== dir && isInside(dir, other)))
      .map((path) => ({ kind: 'tmpfs', path }))
  )
}

/**
 * Writes the files of the box's /etc that differ from the host's: passwd, group, hostname, hosts and npmrc; resolv.conf for
 * a box with its own network. At level process only npmrc is used.
 * @param uid the box user's uid in the box.
 */
export async function writeEtcFiles(
  paths: BoxPaths,
  hostname: string,
  uid: number,
  network: Isolation['network'],
): Promise<void> {
  const shell = existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh'
  const files = {
    passwd: `root:x:0:0:root:/:/usr/sbin/nologin\nbox:x:${uid}:${uid}:box:${VIEW_PATHS.home}:${shell}\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n`,
    group: `root:x:0:\ntty:x:5:\nbox:x:${uid}:\nnogroup:x:65534:\n`,
    npmrc: `prefix=\${HOME}/.local\n`,
    ...(network === 'own' ? { 'resolv.conf': createResolvConf() } : {}),
  }
  await mkdir(paths.etc, { recursive: true, mode: 0o755 })
  // The host's file is used unless this start replaces it.
  await rm(join(paths.etc, 'resolv.conf'), { force: true })
  await writeHostnameFiles(paths, hostname)
  await writeFiles(paths.etc, files)
}

/** A box that runs sees the change. */
export async function writeHostnameFiles({ etc }: BoxPaths, hostname: string): Promise<void> {
  const hosts = existsSync('/etc/hosts') ? readFileSync('/etc/hosts', 'utf8') : '127.0.0.1 localhost\n'
  await writeFiles(etc, {
    hostname: `${hostname}\n`,
    hosts: `${hosts.trimEnd()}\n127.0.1.1 ${hostname}\n`,
  })
}

/** Existing files stay the same inodes, which boxes have mounted. */
async function writeFiles(dir: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(dir, name), text)
    // The box user reads these files. chmod ignores the coordinator's umask, which could forbid that.
    await chmod(join(dir, name), 0o644)
  }
}
