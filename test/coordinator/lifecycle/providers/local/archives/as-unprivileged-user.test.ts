// Repeats the other tests of this directory as an unprivileged user when the suite runs as root.
import { repeatAsUnprivilegedUser } from '../repeat-as-unprivileged-user.ts'

repeatAsUnprivilegedUser(import.meta.filename, ['chunker', 'interruptions', 'store', 'workspaces'])
