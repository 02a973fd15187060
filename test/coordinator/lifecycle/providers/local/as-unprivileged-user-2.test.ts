// Repeats the other half of the tests of this directory as an unprivileged user when the suite runs as root.
import { repeatAsUnprivilegedUser } from './repeat-as-unprivileged-user.ts'

const EXCEPT = ['agent-bundle', 'describe-isolation', 'install-packages', 'regions', 'runtime']
repeatAsUnprivilegedUser(import.meta.filename, EXCEPT, { index: 1, of: 2 })
