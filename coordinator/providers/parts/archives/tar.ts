// The command lines that read and write the files of a box. They run as the user of the box.
import { AWS_TOKEN_PATH } from '../../../../shared/field-values.ts'
import { PermanentProviderError } from '../../provider.ts'
import { runProbe } from '../run-probe.ts'

/** The programs of the operating system that archives use. */
export type TarTools = {
  /** The user is root in a user namespace of its own, so the modes of its files are no obstacle. */
  hasUserNamespace: boolean
}

export type TarCommand = {
  argv: string[]
  /** The command enters it before it changes the user. */
  cwd: string
  user?: { uid: number; gid: number }
}

/** The memory of tar and du grows with the number of hard links and the entries of a directory, which the box chooses. */
const MAX_MEMORY_KIB = 1024 * 1024

const LIMITED = ['/bin/sh', '-c', `ulimit -v ${MAX_MEMORY_KIB} && exec "$@"`, 'sh']
/**
 * The process exits with the thread that started it. The process namespace gives tar a constant process id, which GNU tar
 * writes into the entries of sparse files.
 */
const IN_NAMESPACE = ['unshare', '--user', '--map-root-user', '--']
  .concat(['setpriv', '--pdeathsig', 'KILL', '--'])
  .concat(['unshare', '--pid', '--fork', '--kill-child', '--'])

const FORMAT = ['--sparse', '--xattrs', '--xattrs-include=user.*', '--acls', '--numeric-owner']
/** Equal files make an equal stream: no access times, no process ids, sorted names. */
const DETERMINISTIC = [
  '--format=pax',
  '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime',
  '--sort=name',
  '--owner=0',
  '--group=0',
]
/** Unlike -a, which ignores failures with attributes. */
const CLONE_PRESERVE = 'mode,ownership,timestamps,links,xattr'
/** The token of the box for AWS: a copy of the box must not have it, and a backup would contain it. Each start writes a new one. */
const TOKEN = AWS_TOKEN_PATH.replace('~', 'home')
const WITHOUT_TOKEN = ['--anchored', '--no-wildcards', `--exclude=${TOKEN}`, `--exclude=${TOKEN}.new`]
/** tar opens each path of an archive as a whole when it extracts it. */
const PATH_MAX = 4096
/** The shortest depth at which a path can have PATH_MAX bytes. */
const LONG_PATH_DEPTH = 16

/**
 * find fails when its working directory is not readable and a directory above it is not searchable: it starts in each root,
 * which the user can read.
 */
const FIND_IN_EACH = `while [ $# -gt 0 ]; do
  (cd -P "./$1" && exec find . -xdev -mindepth ${LONG_PATH_DEPTH - 1} -path "$2" -printf "$1/%P\\n" -quit) || exit
  shift 2
done`

export type BoxFiles = {
  /** Contains the directories `roots`. */
  dir: string
  roots: readonly string[]
  /** null: the coordinator's user. */
  uid: number | null
}

/** Finds the tools that work for the user of a box. null: the coordinator's user. */
export type ToolsProbe = (uid: number | null) => Promise<TarTools>

export type ToolsProbeOptions = {
  /** Called with a sentence while a probe takes long. */
  onSlow(message: string): void
  /** The tools, instead of a probe. */
  known?: TarTools | undefined
  /** Only tests set it. */
  run?: typeof runProbe
}

/** Probes at the first call, and again after a failed probe. */
export function createToolsProbe({ onSlow, known, run = runProbe }: ToolsProbeOptions): ToolsProbe {
  let tools = known && Promise.resolve(known)
  return (uid) => {
    const user = uid === null ? undefined : { uid, gid: uid }
    tools ??= probeTarTools(user, onSlow, run).catch((error: unknown) => {
      tools = undefined
      throw error
    })
    return tools
  }
}

/** Throws PermanentProviderError when GNU tar is not installed, InconclusiveProbeError when a probe gives no answer. */
async function probeTarTools(
  user: TarCommand['user'],
  onSlow: (message: string) => void,
  run: typeof runProbe,
): Promise<TarTools> {
  const isGnu = ['/bin/sh', '-c', 'tar --version | grep -q "GNU tar"']
  if ((await run(isGnu, { description: 'The probe of GNU tar', onSlow })) !== null)
    throw new PermanentProviderError(
      'Snapshots need GNU tar. Install the package tar on the machine of the coordinator.',
    )
  const problem = await run([...IN_NAMESPACE, 'true'], {
    description: 'The probe of user namespaces for snapshots',
    onSlow,
    ...(user && { user }),
  })
  return { hasUserNamespace: problem === null }
}

/** The commands that read the files of a box. */
export type ReadCommands = Pick<ReturnType<typeof buildTarCommands>, 'pack' | 'measure' | 'findLongPath'>

export function buildTarCommands({ hasUserNamespace }: TarTools, { dir, roots, uid }: BoxFiles) {
  const user = uid === null ? {} : { user: { uid, gid: uid } }
  const prefix = [...LIMITED, ...(hasUserNamespace ? IN_NAMESPACE : [])]
  const build = (argv: string[]): TarCommand => ({ argv: [...prefix, ...argv], cwd: dir, ...user })
  /** Without a user namespace, only root reads files whose mode forbids it. GNU tar follows no symlinks. */
  const buildReader = (argv: string[]): TarCommand =>
    hasUserNamespace ? build(argv) : { argv: [...prefix, ...argv], cwd: dir }
  return {
    pack: buildReader([
      ...['tar', '-c', '--one-file-system', ...FORMAT, ...DETERMINISTIC, ...WITHOUT_TOKEN],
      ...['--', ...roots],
    ]),
    /** The last line has the allocated KiB. */
    measure: buildReader(['du', '-skcx', '--', ...roots]),
    /** Prints a path that is too long for tar. */
    findLongPath: buildReader([
      '/bin/sh',
      '-c',
      FIND_IN_EACH,
      'sh',
      // The paths that tar writes start with the root, the paths that find compares start with a period.
      ...roots.flatMap((root) => [root, `${'?'.repeat(PATH_MAX + 1 - root.length)}*`]),
    ]),
    /** Clones the files without copying their content. Fails, and leaves a part, where a file cannot be cloned. */
    clone: (target: string) =>
      build(['cp', '-dRx', `--preserve=${CLONE_PRESERVE}`, '--reflink=always', '--', ...roots, target]),
    unpack: build([
      'tar',
      '-x',
      '--preserve-permissions',
      '--no-same-owner',
      '--warning=no-timestamp',
      ...FORMAT,
    ]),
  }
}
