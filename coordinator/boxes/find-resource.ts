// The fields of boxes and snapshots that decide who may see their operations.

import type { OperationServiceOptions } from '../jobs/operations/service.ts'
import { findBoxResource } from './store/boxes.ts'
import { findSnapshotResource } from './store/snapshots.ts'

export const findOperationTarget: OperationServiceOptions['findTarget'] = {
  box_delete: findBoxResource,
  snapshot_delete: findSnapshotResource,
}
