// Starts a Docker daemon of its own, which does not change the network of the machine, with one small image.
import { execFileSync, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { waitUntil } from '../../test/support/wait-until.ts'
import { runProgram, terminate } from './processes.ts'

export type Docker = {
  /** Runs the docker command. */
  run(...args: string[]): Promise<void>
  close(): Promise<void>
}

export const IMAGE = 'boxwood-bench'
const DAEMON = ['/usr/sbin/dockerd', '/usr/bin/dockerd'].find((path) => existsSync(path))
const PROGRAMS = ['/bin/sh', '/bin/true']

/** @returns the daemon, or why there is none */
export async function startDocker(): Promise<Docker | string> {
  if (DAEMON === undefined) return 'docker.io is not installed'
  if (process.getuid?.() !== 0) return 'dockerd needs root'
  await using cleanup = new AsyncDisposableStack()
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-docker-'))
  cleanup.defer(() => rm(dir, { recursive: true, force: true }))
  const socket = `unix://${dir}/docker.sock`
  const paths = [
    '--data-root',
    join(dir, 'data'),
    '--exec-root',
    join(dir, 'exec'),
    '--pidfile',
    join(dir, 'pid'),
  ]
  const child = spawn(DAEMON, ['--iptables=false', '--bridge=none', '--host', socket, ...paths], {
    stdio: 'ignore',
  })
  cleanup.defer(() => terminate(child))
  const run = (...args: string[]) => runProgram('/usr/bin/docker', ['--host', socket, ...args])
  try {
    await waitUntil('dockerd accepts requests', () =>
      run('version').then(
        () => true,
        () => {
          if (child.exitCode !== null) throw new Error(`dockerd exited with ${child.exitCode}`)
        },
      ),
    )
    await importImage(run, dir)
  } catch (error) {
    return (error as Error).message
  }
  const started = cleanup.move()
  return { run, close: () => started.disposeAsync() }
}

/** An image with a shell, `true` and their libraries. */
async function importImage(run: Docker['run'], dir: string): Promise<void> {
  const root = join(dir, 'image')
  const libraries = PROGRAMS.flatMap((program) =>
    [...execFileSync('ldd', [program], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g)].map(
      ([, path = '']) => path,
    ),
  )
  for (const path of new Set([...PROGRAMS, ...libraries])) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await cp(path, join(root, path), { dereference: true })
  }
  const archive = join(dir, 'image.tar')
  await runProgram('tar', ['-cf', archive, '-C', root, '.'])
  await run('import', archive, IMAGE)
}
