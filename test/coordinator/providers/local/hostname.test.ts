// The hostname of boxes that run can change only where the programs for it are installed.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { isInstalled } from '../../../../coordinator/providers/parts/system-path.ts'
import { requires } from '../../../support/requires.ts'
import { isRoot } from './support.ts'

const MODULE = join(import.meta.dirname, '../../../../coordinator/providers/local/hostname.ts')
const PROGRAM = `const { findHostnameProblem } = await import(process.argv[1])
for (const level of ['namespaces', 'process']) console.log(findHostnameProblem({ level, network: 'own' }))`
/** Hides the program in a mount namespace of its own. */
const HIDE = 'mount --bind /dev/null "$(command -v hostname)" && exec "$@"'

const skip =
  isRoot && isInstalled('hostname') ? requires('unshare', 'nsenter') : 'needs root, and the program hostname'

t.test(
  'without the program hostname, no machine can wait at a level with a hostname',
  { skip },
  async (t) => {
    const node = [process.execPath, '--input-type=module', '--eval', PROGRAM, MODULE]
    const args = ['--mount', '--propagation', 'private', 'sh', '-c', HIDE, 'sh', ...node]
    const { stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8' })
    t.equal(stdout, 'hostname is not installed\nnull\n', stderr)
  },
)
