// The Node that runs the agent in a container, whatever C library its image has: with its own loader and libraries.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { PermanentProviderError } from '../provider.ts'
import { replaceInterpreter } from './elf-interpreter.ts'
import { CONTAINER_PATHS, NODE_FILES } from './paths.ts'

export type NodeFiles = {
  /** The name of the directory of this Node beside the builds of the agent. */
  dirName: string
  /** The name of the loader in the agent directory. The path of the loader is in the executable, and must be short. */
  loaderName: string
  /** Reads the files. `name` is relative to the agent directory. */
  read(): Promise<{ name: string; bytes: Buffer }[]>
}

/** The libraries of glibc that Node and the addons load on demand, where glibc has them as files of their own. */
const GLIBC_LIBRARIES = [
  'libc.so.6',
  'libdl.so.2',
  'libm.so.6',
  'libnss_dns.so.2',
  'libnss_files.so.2',
  'libpthread.so.0',
  'libresolv.so.2',
  'librt.so.1',
  'libutil.so.1',
]

const LOADER = /^ld-linux.*\.so\.\d+$/
/** The other libraries that a process has loaded: such as linux-vdso.so.1, which is no file. */
const isFile = (path: string): boolean => path.startsWith('/')

/**
 * Finds the files of this Node. @throws PermanentProviderError when its C library is not glibc
 * @param node the path of the executable
 */
export async function findNodeFiles(node: string): Promise<NodeFiles> {
  const loaded = (await listSharedObjects(node)).filter(isFile)
  const loader = loaded.find((path) => LOADER.test(basename(path)))
  const libc = loaded.find((path) => basename(path) === 'libc.so.6')
  if (loader === undefined || libc === undefined)
    throw new PermanentProviderError(
      `Boxes of Docker, Podman and Incus need a coordinator whose Node uses glibc, and ${node} does not. Run the coordinator on a distribution with glibc, such as Debian.`,
    )
  const glibc = GLIBC_LIBRARIES.map((name) => join(dirname(libc), name)).filter((path) => existsSync(path))
  const libraries = [...new Map([...glibc, ...loaded].map((path) => [basename(path), path])).values()]
  const id = await hashFiles([node, ...libraries])
  const [dirName, loaderName] = [`node-${id}`, `l${id.slice(0, 6)}`]
  return {
    dirName,
    loaderName,
    async read() {
      const program = await readFile(node)
      replaceInterpreter(program, `${CONTAINER_PATHS.agentDir}/${loaderName}`)
      return [
        { name: loaderName, bytes: await readFile(loader) },
        { name: join(dirName, NODE_FILES.program), bytes: program },
        ...(await Promise.all(
          libraries.map(async (path) => ({
            name: join(dirName, NODE_FILES.libraries, basename(path)),
            bytes: await readFile(path),
          })),
        )),
      ]
    },
  }
}

async function listSharedObjects(node: string): Promise<string[]> {
  const script = 'process.stdout.write(JSON.stringify(process.report.getReport().sharedObjects))'
  const { stdout } = await promisify(execFile)(node, ['-e', script], { env: {} })
  return JSON.parse(stdout) as string[]
}

/** Identifies the files without reading them, which takes long. */
async function hashFiles(paths: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const path of paths) {
    const { size, mtimeMs } = await stat(path)
    hash.update(`${await realpath(path)}\0${size}\0${mtimeMs}\0`)
  }
  return hash.digest('hex').slice(0, 12)
}
