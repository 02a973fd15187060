// Repeats the tests whose behaviour depends on the user of the coordinator when the suite runs as root. Without root:
// boxes have the uid of the coordinator, its processes are found by their environment, namespaces need a user namespace, tar
// reads files in one, and limits and the freezer need a delegated cgroup.
import { repeatAsUnprivilegedUser } from './repeat-as-unprivileged-user.ts'

repeatAsUnprivilegedUser(import.meta.dirname, {
  '../parts/archives/capture-restore': 'all levels',
  '../parts/archives/tree-copy': 'all levels',
  'box-written-files': 'process',
  confinement: 'all levels',
  create: 'process',
  'damaged-machine': 'process',
  destroy: 'process',
  'detached-processes': 'process',
  directories: 'all levels',
  environment: 'all levels',
  freeze: 'process',
  freezer: 'all levels',
  isolation: 'all levels',
  limits: 'process',
  'machine-copies': 'process',
  mounts: 'all levels',
  network: 'all levels',
  reclaim: 'all levels',
  regions: 'process',
  '../parts/root-programs': 'process',
  stop: 'all levels',
  'terminate-processes': 'process',
  'user-namespaces': 'all levels',
  'warm-machine': 'all levels',
})
