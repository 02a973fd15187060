// Starts a Docker daemon in namespaces of its own, with one small image. On the machine it would mount file systems, and change
// settings of the network, such as net.ipv4.ip_forward.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cp, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { findSandboxProblem, startSandbox } from '../../test/support/engines/sandbox.ts'
import { waitUntil } from '../../test/support/wait-until.ts'
import { runProgram } from './processes.ts'

export type Docker = {
  /** Runs the docker command. */
  run(...args: string[]): Promise<void>
  close(): Promise<void>
}

export const IMAGE = 'boxwood-bench'
const PROGRAMS = ['/bin/sh', '/bin/true']

/** @returns the daemon, or why there is none */
export async function startDocker(): Promise<Docker | string> {
  const problem = findSandboxProblem(['dockerd', 'docker'])
  if (problem !== undefined) return problem
  await using cleanup = new AsyncDisposableStack()
  const sandbox = await startSandbox()
  cleanup.defer(() => sandbox.close())
  const { dir } = sandbox
  const socket = `unix://${dir}/docker.sock`
  const paths = [
    '--data-root',
    join(dir, 'data'),
    '--exec-root',
    join(dir, 'exec'),
    '--pidfile',
    join(dir, 'pid'),
  ]
  const daemon = sandbox.spawn(['dockerd', '--iptables=false', '--bridge=none', '--host', socket, ...paths], {
    log: 'dockerd.log',
  })
  const run = (...args: string[]) => runProgram('docker', ['--host', socket, ...args])
  try {
    await waitUntil('dockerd accepts requests', () =>
      run('version').then(
        () => true,
        () => {
          if (daemon.hasExited())
            throw new Error(`dockerd exited: ${readFileSync(join(dir, 'dockerd.log'), 'utf8').slice(-2000)}`)
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
