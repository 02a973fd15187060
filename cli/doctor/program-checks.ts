// Checks of this program: the entry on the PATH, Node, the npm packages and the native parts.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findOnPath, isSameFile } from '../../shared/command-name.ts'
import { getNativeFileName, NATIVE_PARTS } from '../../shared/native-file-names.ts'
import { VERSION } from '../../shared/version.ts'
import { boxCommand, formatPathAdvice } from '../command-name.ts'
import { IS_NPM_PACKAGE, PROJECT_DIR } from '../project-directory.ts'
import { type Check, fail, ok, warn } from './check.ts'

const NODE_MAJOR_VERSION = 24

export const checkProgram = (): Check[] => [checkPath(), checkNode(), checkPackages(PROJECT_DIR)]

const getPathAdvice = (): string => `${formatPathAdvice().replace(/^./, (letter) => letter.toUpperCase())}.`

function checkPath(): Check {
  const script = join(PROJECT_DIR, 'box')
  const found = findOnPath('box', process.env.PATH)
  if (isSameFile(found, script)) return ok('box', `version ${VERSION}, ${found}`)
  if (found === null) return warn('box', `version ${VERSION}, ${script}; not on the PATH`, getPathAdvice())
  return warn(
    'box',
    `version ${VERSION}, ${script}; the PATH finds another program first: ${found}`,
    IS_NPM_PACKAGE
      ? getPathAdvice()
      : `Run \`${boxCommand()} install\`, and put its directory first on the PATH.`,
  )
}

/** The script `box` uses the Node of the project; another program may have started main.ts with another Node. */
function checkNode(): Check {
  const isExpected = Number.parseInt(process.versions.node, 10) === NODE_MAJOR_VERSION
  return isExpected
    ? ok('node', process.version)
    : warn(
        'node',
        `${process.version} instead of ${NODE_MAJOR_VERSION}`,
        `Start Boxwood with ${boxCommand()}, which uses its own Node.`,
      )
}

type Manifest = { version?: string; dependencies?: Record<string, string> }
type Lock = { packages?: Record<string, { version?: string }> }

/** The direct dependencies, and their versions in package-lock.json. */
export function checkPackages(projectDir: string): Check {
  const { dependencies = {} } = readJson<Manifest>(projectDir, 'package.json') ?? {}
  const locked = readJson<Lock>(projectDir, 'package-lock.json')?.packages ?? {}
  const names = Object.keys(dependencies)
  const outdated = names.filter((name) => {
    const installed = readJson<Manifest>(projectDir, `node_modules/${name}/package.json`)?.version
    const expected = locked[`node_modules/${name}`]?.version ?? installed
    return installed === undefined || installed !== expected
  })
  return outdated.length === 0
    ? ok('packages', `${names.length} installed`)
    : fail(
        'packages',
        `missing or outdated: ${outdated.join(', ')}`,
        IS_NPM_PACKAGE
          ? 'Install the .tgz file of Boxwood again: `npm install -g FILE`.'
          : `Run \`npm ci\` in ${projectDir}.`,
      )
}

function readJson<T>(projectDir: string, file: string): T | null {
  try {
    return JSON.parse(readFileSync(join(projectDir, file), 'utf8')) as T
  } catch {
    return null
  }
}

/** The parts that `npm ci` compiles. */
export function checkNativeParts(projectDir = PROJECT_DIR): Check {
  const dir = join(projectDir, 'agent/exec/native')
  const parts = [
    { name: 'spawner', part: NATIVE_PARTS.spawner },
    { name: 'runner', part: NATIVE_PARTS.runner },
    { name: 'terminal host', part: NATIVE_PARTS.terminalHost },
    { name: 'confinement', part: NATIVE_PARTS.confinement },
  ]
  const read = (name: string) => readFileSync(join(dir, name))
  const missing = parts
    .filter(({ part }) => !existsSync(join(dir, getNativeFileName(part, read))))
    .map(({ name }) => name)
  if (missing.length === 0) return ok('native parts', 'compiled')
  const compiler = ['cc', 'gcc', 'clang'].find((name) => findOnPath(name, process.env.PATH) !== null)
  const install =
    compiler === undefined ? 'Install a C compiler (Debian, Ubuntu: apt-get install gcc), then run' : 'Run'
  return warn(
    'native parts',
    `not compiled: ${missing.join(', ')}; Boxwood uses slower replacements, terminal sessions end with their agent, and boxes may use kernel keyrings`,
    `${install} \`npm run build-native\` in ${projectDir}.`,
  )
}
