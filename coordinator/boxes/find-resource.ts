// The fields of boxes and snapshots that decide who may see their operations.
import { findBoxResource } from '../box-store/boxes.ts'
import { findSnapshotResource } from '../box-store/snapshots.ts'
import type { OperationServiceOptions } from '../operations/service.ts'

export const findOperationTarget: OperationServiceOptions['findTarget'] = {
  box_delete: findBoxResource,
  snapshot_delete: findSnapshotResource,
}
