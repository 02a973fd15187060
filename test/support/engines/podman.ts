// Starts the API service of Podman for a test, in a sandbox: as root, or as an ordinary user.
import { chownSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ImageEngine } from './engine.ts'
import { buildEngineImages, FAULTY_REGISTRY, IMAGE_PROGRAMS, REGISTRY, startRegistry } from './images.ts'
import { runDaemon } from './run-daemon.ts'
import { findSandboxProblem, type Sandbox, startSandbox } from './sandbox.ts'

const PROGRAMS = ['podman', 'conmon', 'runc', 'iptables', ...IMAGE_PROGRAMS] as const

/** The ordinary user, which exists in the sandbox only, and the first of the user ids of its containers. */
const USER = { name: 'boxwood-engine', id: 54_323, firstSubordinateId: 200_000_000 }

/** Why Podman cannot be started on this machine, as a sentence. undefined: it can. */
export const findPodmanProblem = (user: 'root' | 'ordinary'): string | undefined =>
  findSandboxProblem(
    user === 'root' ? PROGRAMS : [...PROGRAMS, 'newuidmap', 'newgidmap', 'slirp4netns', 'setpriv'],
  )

/** The images of images.ts are pulled from a registry in the sandbox. Returns a reason when it cannot be filled. */
export async function startPodman(user: 'root' | 'ordinary'): Promise<ImageEngine | { skip: string }> {
  const images = await buildEngineImages()
  if ('skip' in images) return images
  const sandbox = await startSandbox()
  try {
    const home = join(sandbox.dir, 'podman')
    writeConfiguration(home)
    if (user === 'ordinary') addUser(sandbox, home)
    const socket = join(home, 'podman.sock')
    const env = {
      HOME: home,
      XDG_RUNTIME_DIR: join(home, 'runtime'),
      CONTAINERS_CONF: join(home, 'containers.conf'),
      CONTAINERS_STORAGE_CONF: join(home, 'storage.conf'),
      CONTAINERS_REGISTRIES_CONF: join(home, 'registries.conf'),
    }
    const podman = user === 'root' ? ['podman'] : [...asUser, 'podman']
    const registry = await startRegistry(sandbox, images)
    const service = [...podman, 'system', 'service', '--time=0', `unix://${socket}`]
    const daemon = await runDaemon(sandbox, service, { env, socket })
    return {
      socket,
      env: { BOXWOOD_PODMAN_HOST: `unix://${socket}` },
      dir: sandbox.dir,
      registry,
      command: (args, input) =>
        sandbox.run([...podman, ...args], { env, ...(input === undefined ? {} : { input }) }),
      runInside: (command) => sandbox.run(command),
      kill: daemon.kill,
      start: daemon.start,
      close: sandbox.close,
    }
  } catch (error) {
    await sandbox.close()
    throw error
  }
}

const asUser = ['setpriv', `--reuid=${USER.id}`, `--regid=${USER.id}`, '--clear-groups', '--inh-caps=-all']

/** runc and cgroupfs also work with cgroup v1. Podman raises limits above those of a process without CAP_SYS_RESOURCE. */
function writeConfiguration(home: string): void {
  for (const name of ['runtime', 'networks']) mkdirSync(join(home, name), { recursive: true })
  const files = {
    'containers.conf': `
[containers]
default_ulimits = ["nofile=${readHardLimit('Max open files')}", "nproc=${readHardLimit('Max processes')}"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
[network]
network_config_dir = "${home}/networks"
`,
    'storage.conf': `
[storage]
driver = "overlay"
graphroot = "${home}/storage"
rootless_storage_path = "${home}/storage"
runroot = "${home}/runtime/storage"
`,
    'registries.conf': `
unqualified-search-registries = ["docker.io"]
[[registry]]
location = "docker.io"
[[registry.mirror]]
location = "${REGISTRY}"
insecure = true
[[registry]]
location = "${FAULTY_REGISTRY}"
insecure = true
`,
  }
  for (const [name, content] of Object.entries(files)) writeFileSync(join(home, name), content)
}

function readHardLimit(name: string): string {
  const line = readFileSync('/proc/self/limits', 'utf8')
    .split('\n')
    .find((line) => line.startsWith(name))
  const [, hard = '1024'] = line?.slice(name.length).trim().split(/\s+/) ?? []
  const limit = hard === 'unlimited' ? '1048576' : hard
  return `${limit}:${limit}`
}

/** Adds the user to copies of the files in /etc, which only the sandbox sees. */
function addUser(sandbox: Sandbox, home: string): void {
  const { name, id, firstSubordinateId } = USER
  const lines = {
    passwd: `${name}:x:${id}:${id}::${home}:/bin/sh`,
    group: `${name}:x:${id}:`,
    subuid: `${name}:${firstSubordinateId}:65536`,
    subgid: `${name}:${firstSubordinateId}:65536`,
  }
  for (const [file, line] of Object.entries(lines)) {
    const copy = join(sandbox.dir, file)
    copyFileSync(`/etc/${file}`, copy)
    writeFileSync(copy, `${line}\n`, { flag: 'a' })
    sandbox.run(['mount', '--bind', copy, `/etc/${file}`])
  }
  for (const path of ['', 'runtime', 'networks', 'containers.conf', 'storage.conf', 'registries.conf'])
    chownSync(join(home, path), id, id)
}
