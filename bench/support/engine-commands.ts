// What the commands of an engine do for one container, beside which boxes are measured.
import { dirname } from 'node:path'
import type { StartedProvider } from '../../test/support/engines/providers.ts'
import { runProgram } from './processes.ts'

export type EngineCommands = {
  /** The commands that are measured, as Markdown. */
  names: Record<'create' | 'thaw' | 'snapshot' | 'fork', string>
  /** Gets the image. */
  prepare(): Promise<void>
  /** Resolves when a first command has run. */
  create(name: string): Promise<void>
  exec(name: string, command: string): Promise<void>
  /** Returns false where the engine cannot. */
  freeze(name: string): Promise<boolean>
  /** Resolves when a command has run. */
  thaw(name: string): Promise<void>
  snapshot(name: string): Promise<void>
  /** Resolves when a command has run in the copy. */
  fork(name: string, copy: string): Promise<void>
  remove(names: readonly string[]): Promise<void>
}

/** null: the provider has no engine. */
export function createEngineCommands({
  kind,
  engine,
  smallImage,
  canFreeze,
}: StartedProvider): EngineCommands | null {
  if (engine === null || smallImage === null) return null
  return kind === 'incus'
    ? createIncusCommands(engine.socket, smallImage)
    : createContainerCommands(kind, engine.socket, smallImage, canFreeze)
}

/** Docker and Podman. */
function createContainerCommands(
  kind: string,
  socket: string,
  image: string,
  canFreeze: boolean,
): EngineCommands {
  const connection =
    kind === 'docker' ? ['--host', `unix://${socket}`] : ['--remote', '--url', `unix://${socket}`]
  const run = (...args: string[]) => runProgram(kind, [...connection, ...args])
  /** The container of a box has a network and volumes of its own too. */
  const start = async (name: string, from: string) => {
    await run('run', '--detach', '--name', name, from, 'sleep', '1000000')
    await run('exec', name, 'true')
  }
  const exec = (name: string, command: string) => run('exec', '--workdir', '/root', name, 'sh', '-c', command)
  return {
    names: {
      create: `\`${kind} run\`, \`exec\``,
      thaw: `\`${kind} unpause\`, \`exec\``,
      snapshot: `\`${kind} commit\``,
      fork: `\`${kind} commit\`, \`run\`, \`exec\``,
    },
    prepare: () => run('pull', image),
    create: (name) => start(name, image),
    exec,
    async freeze(name) {
      if (canFreeze) await run('pause', name)
      return canFreeze
    },
    async thaw(name) {
      await run('unpause', name)
      await run('exec', name, 'true')
    },
    snapshot: (name) => run('commit', name, `snapshot-${name}`),
    async fork(name, copy) {
      await run('commit', name, `fork-${name}`)
      await start(copy, `fork-${name}`)
    },
    async remove(names) {
      await run('rm', '--force', ...names)
      await run('rmi', '--force', `snapshot-${names[0]}`, `fork-${names[0]}`)
    },
  }
}

function createIncusCommands(socket: string, image: string): EngineCommands {
  const env = { ...process.env, INCUS_DIR: dirname(socket) }
  const run = (...args: string[]) => runProgram('incus', args, { env })
  const exec = (name: string, command: string) =>
    run('exec', name, '--cwd', '/root', '--', 'sh', '-c', command)
  return {
    names: {
      create: '`incus launch`, `exec`',
      thaw: '`incus resume`, `exec`',
      snapshot: '`incus snapshot create`',
      fork: '`incus copy`, `start`, `exec`',
    },
    prepare: async () => undefined,
    async create(name) {
      await run('launch', image, name)
      await run('exec', name, 'true')
    },
    exec,
    async freeze(name) {
      await run('pause', name)
      return true
    },
    async thaw(name) {
      await run('resume', name)
      await run('exec', name, 'true')
    },
    snapshot: (name) => run('snapshot', 'create', name, 'bench'),
    async fork(name, copy) {
      await run('copy', '--instance-only', name, copy)
      await run('start', copy)
      await run('exec', copy, 'true')
    },
    remove: (names) => run('delete', '--force', ...names),
  }
}
