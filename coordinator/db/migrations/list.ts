// All migrations, in order. Never change a released migration: add a new one.
import type { Migration } from 'kysely/migration'
import { initial } from './0001-initial.ts'
import { commandHistory } from './0002-command-history.ts'
import { boundReportedNumbers } from './0003-bound-reported-numbers.ts'
import { liveBoxesAndCommandStatus } from './0004-live-boxes-and-command-status.ts'
import { boxMetrics } from './0005-box-metrics.ts'
import { lifeOfABox } from './0006-life-of-a-box.ts'
import { accessAndAudit } from './0007-access-and-audit.ts'
import { signIn } from './0008-sign-in.ts'
import { workspaceIndexes } from './0009-workspace-indexes.ts'
import { machines } from './0010-machines.ts'
import { agentRollouts } from './0011-agent-rollouts.ts'
import { lastPrompts } from './0012-last-prompts.ts'
import { commandModes } from './0013-command-modes.ts'
import { portShares } from './0014-port-shares.ts'
import { shareViewers } from './0015-share-viewers.ts'
import { environmentsAndSecrets } from './0016-environments-and-secrets.ts'
import { images } from './0017-images.ts'
import { operationsInProgress } from './0018-operations-in-progress.ts'
import { downloadLinks } from './0019-download-links.ts'
import { billing } from './0020-billing.ts'
import { federation } from './0021-federation.ts'
import { paymentFailures } from './0022-payment-failures.ts'
import { secretLocations } from './0023-secret-locations.ts'
import { boundedCredit } from './0024-bounded-credit.ts'
import { scopesDeletionsVersions } from './0025-scopes-deletions-versions.ts'
import { imageDownloads } from './0026-image-downloads.ts'
import { labels } from './0027-labels.ts'
import { deleteAfter } from './0028-delete-after.ts'
import { deletedBoxNames } from './0029-deleted-box-names.ts'
import { warmMachines } from './0030-warm-machines.ts'
import { replicas } from './0031-replicas.ts'
import { deployment } from './0032-deployment.ts'
import { hosts } from './0033-hosts.ts'
import { fleet } from './0034-fleet.ts'

export const migrations: Record<string, Migration> = {
  '0001-initial': initial,
  '0002-command-history': commandHistory,
  '0003-bound-reported-numbers': boundReportedNumbers,
  '0004-live-boxes-and-command-status': liveBoxesAndCommandStatus,
  '0005-box-metrics': boxMetrics,
  '0006-life-of-a-box': lifeOfABox,
  '0007-access-and-audit': accessAndAudit,
  '0008-sign-in': signIn,
  '0009-workspace-indexes': workspaceIndexes,
  '0010-machines': machines,
  '0011-agent-rollouts': agentRollouts,
  '0012-last-prompts': lastPrompts,
  '0013-command-modes': commandModes,
  '0014-port-shares': portShares,
  '0015-share-viewers': shareViewers,
  '0016-environments-and-secrets': environmentsAndSecrets,
  '0017-images': images,
  '0018-operations-in-progress': operationsInProgress,
  '0019-download-links': downloadLinks,
  '0020-billing': billing,
  '0021-federation': federation,
  '0022-payment-failures': paymentFailures,
  '0023-secret-locations': secretLocations,
  '0024-bounded-credit': boundedCredit,
  '0025-scopes-deletions-versions': scopesDeletionsVersions,
  '0026-image-downloads': imageDownloads,
  '0027-labels': labels,
  '0028-delete-after': deleteAfter,
  '0029-deleted-box-names': deletedBoxNames,
  '0030-warm-machines': warmMachines,
  '0031-replicas': replicas,
  '0032-deployment': deployment,
  '0033-hosts': hosts,
  '0034-fleet': fleet,
}
