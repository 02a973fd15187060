// Starts the Docker Engine for a test, in a sandbox.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { ImageEngine } from './engine.ts'
import { buildEngineImages, IMAGE_PROGRAMS, REGISTRY, startRegistry } from './images.ts'
import { runDaemon } from './run-daemon.ts'
import { findSandboxProblem, startSandbox } from './sandbox.ts'

/** Why Docker cannot be started on this machine, as a sentence. undefined: it can. */
export const findDockerProblem = (): string | undefined =>
  findSandboxProblem(['dockerd', 'containerd', 'runc', 'iptables', ...IMAGE_PROGRAMS])

/** The images of images.ts are pulled from a registry in the sandbox. Returns a reason when it cannot be filled. */
export async function startDocker(): Promise<ImageEngine | { skip: string }> {
  const images = await buildEngineImages()
  if ('skip' in images) return images
  const sandbox = await startSandbox()
  try {
    const socket = join(sandbox.dir, 'docker.sock')
    const pidFile = join(sandbox.dir, 'docker.pid')
    const registry = await startRegistry(sandbox, images)
    const daemon = await runDaemon(
      sandbox,
      [
        'dockerd',
        `--data-root=${join(sandbox.dir, 'data')}`,
        `--exec-root=${join(sandbox.dir, 'exec')}`,
        `--pidfile=${pidFile}`,
        `--host=unix://${socket}`,
        `--registry-mirror=http://${REGISTRY}`,
        // Docker waits for 5 s before the second attempt.
        '--max-download-attempts=1',
        '--log-level=warn',
      ],
      {
        socket,
        // The pids of a sandbox are low, so another process may have the one of the killed engine.
        beforeStart: () => rmSync(pidFile, { force: true }),
      },
    )
    return {
      socket,
      env: { BOXWOOD_DOCKER_HOST: `unix://${socket}` },
      dir: sandbox.dir,
      registry,
      command: (args, input) =>
        sandbox.run(['docker', ...args], {
          env: { DOCKER_HOST: `unix://${socket}` },
          ...(input === undefined ? {} : { input }),
        }),
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
