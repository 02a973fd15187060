// Compiles the optional native parts. npm runs this script after an install.
// The script never fails the install: without a C compiler Boxwood uses the fallbacks named below.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { getNativeFileName, NATIVE_PARTS, type NativePart } from '../shared/native-file-names.ts'

const projectDir = join(import.meta.dirname, '..')
const nativeDir = join(projectDir, 'agent/exec/native')
const headersDir = join(projectDir, 'node_modules/node-api-headers/include')
const COMPILERS = ['cc', 'gcc', 'clang']
const RETRY_HINT =
  'To compile the native part, fix the error and run `npm run build-native` in the directory of Boxwood.'

type Build = {
  name: string
  part: NativePart
  /** Alternative compiler options. The first set that compiles is used. */
  optionSets: string[][]
  /** Printed in parentheses after a successful build. */
  purpose: string
  /** What happens without the part: a sentence, printed when the part could not be compiled. */
  fallback: string
}

const BUILDS: Build[] = [
  {
    name: 'the native spawner',
    part: NATIVE_PARTS.spawner,
    optionSets: [['-shared', '-fPIC', '-pthread', '-I', headersDir]],
    purpose: 'starts commands twice as fast',
    fallback:
      'Starting a command takes about twice as long, and synchronous commands cannot open /dev/stdout and /dev/stderr.',
  },
  {
    name: 'the native runner',
    part: NATIVE_PARTS.runner,
    // A static binary ignores LD_PRELOAD, which the command's environment may set.
    optionSets: [['-static'], []],
    purpose: 'records the output and exit status of detached commands',
    fallback: 'A shell script runs detached commands; agent/exec/detached/runner-script.ts lists its limits.',
  },
  {
    name: 'the native confinement',
    part: NATIVE_PARTS.confinement,
    // A static binary runs in a box whatever libraries its file-system view has.
    optionSets: [['-static'], []],
    purpose: 'keeps boxes out of kernel keyrings',
    fallback: 'Boxes can use the kernel keyrings of the coordinator, except at isolation level bubblewrap.',
  },
  {
    name: 'the native terminal host',
    part: NATIVE_PARTS.terminalHost,
    optionSets: [['-static'], []],
    purpose: 'keeps terminal sessions when the agent is restarted',
    fallback: 'Terminal sessions end when the agent of their box is restarted.',
  },
]

/** Returns the line to print. */
function buildPart({ name, part, optionSets, purpose, fallback }: Build): string {
  const sourcePath = join(nativeDir, part.source)
  const fileName = getNativeFileName(part, (name) => readFileSync(join(nativeDir, name)))
  const target = join(nativeDir, fileName)
  if (existsSync(target)) return `${name} is already compiled (${purpose})`
  const tempPath = `${target}.${process.pid}`
  let failure = `no C compiler is installed (${COMPILERS.join(', ')})`
  for (const compiler of COMPILERS) {
    for (const options of optionSets) {
      const args = ['-O2', '-Wall', ...options, sourcePath, '-o', tempPath]
      const { status, stderr, error } = spawnSync(compiler, args, { encoding: 'utf8' })
      if (status === 0) {
        renameSync(tempPath, target)
        removeOldBuilds(part.prefix, fileName)
        return `compiled ${name} with ${compiler} (${purpose})`
      }
      // `error` is set when the compiler does not exist.
      if (error === undefined)
        failure = `${compiler} failed: ${stderr.trim().split('\n').slice(0, 3).join(' ')}`
    }
  }
  return `${name} was not compiled: ${failure}. ${fallback} ${RETRY_HINT}`
}

/** Deletes builds of older versions of the same part. */
function removeOldBuilds(prefix: string, fileName: string): void {
  for (const name of readdirSync(nativeDir))
    if (name.startsWith(prefix) && name !== fileName) rmSync(join(nativeDir, name), { force: true })
}

for (const build of BUILDS) {
  try {
    console.log(`boxwood: ${buildPart(build)}`)
  } catch (error) {
    console.log(`boxwood: ${build.name} was not compiled: ${String(error)}. ${build.fallback} ${RETRY_HINT}`)
  }
}
