// Programs that need root access. A box without it has a script in place of each, which explains what to use instead.
import { isInstalled } from './system-path.ts'

/** In the runtime directory: a script under the name of each program. */
export const NEEDS_ROOT_DIR = 'needs-root'
/** In agent/init. */
export const NEEDS_ROOT_SCRIPT = 'needs-root.sh'

const PACKAGE_MANAGERS = ['apt', 'apt-get', 'dnf', 'yum', 'apk']

/**
 * sudo, and the package managers of this machine. Installation scripts recognise a distribution by its package manager, so
 * a box must not have that of another distribution.
 */
export const listRootPrograms = (): string[] => [...PACKAGE_MANAGERS.filter(isInstalled), 'sudo']
