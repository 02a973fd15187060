// Secrets that boxes use and cannot read (spec §2.8, §4.10).

import type { LoadPlanLimits } from '../admission/plan-limits.ts'
import type { Tunnels } from '../agents/tunnel/types.ts'
import type { Keyring } from '../base/sealing/keyring.ts'
import type { VariableSender } from '../boxes/variable-sender.ts'
import type { BoxFinder } from '../http/find-box.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import { withTag } from '../http/route.ts'
import type { ConfirmActor } from '../identity/confirm-actor.ts'
import type { PortShareSettings } from '../port-shares/settings.ts'
import { getDefaultOrigin } from '../port-shares/share-base.ts'
import { createBoxMountService } from './box-mounts.ts'
import { type BoxSecretHooks, createBoxSecrets } from './box-secrets.ts'
import { createSecretBroker } from './broker.ts'
import { createGrantService } from './grants.ts'
import { createSecretInserter } from './insert-secret.ts'
import { createSecretLock } from './lock-secret.ts'
import { createMountChanges } from './mount-changes.ts'
import { boxSecretRoutes, secretRoutes } from './routes.ts'
import { createSecretService } from './service.ts'
import type { SecretSettings } from './settings.ts'
import type { SecretBroker } from './types.ts'
import { createSecretUses } from './uses.ts'

export type SecretsModuleContext = ModuleBase & {
  config: SecretSettings & Pick<PortShareSettings, 'shareBase'>
  keyring: Pick<Keyring, 'seal' | 'open'>
  boxFinder: BoxFinder
  confirmActor: ConfirmActor
  loadPlanLimits: LoadPlanLimits
  boxVariables: Pick<VariableSender, 'getBrokerTest' | 'whenSent'>
  tunnels: Pick<Tunnels, 'wait'>
  urls: { agents: string; public: string; listener: string }
}

export function secretsModule(context: SecretsModuleContext) {
  const { config, db, clock, log, keyring, boxFinder, confirmActor, boxVariables, tunnels, urls } = context
  const uses = createSecretUses({ db, clock, log })
  const broker: SecretBroker = createSecretBroker({ db, keyring, recordUse: uses.recordUse })
  const changes = createMountChanges()
  const hostRules = {
    ownNames: [urls.public, urls.agents, urls.listener].map((url) => new URL(url).hostname),
    shareHost: new URL(config.shareBase ?? getDefaultOrigin(urls.listener)).hostname,
    allowsSingleLabels: config.secretsPrivate.length > 0,
  }
  const common = { db, clock, boxes: boxFinder, confirmActor }
  const insertSecret = createSecretInserter({ keyring, hostRules, loadPlanLimits: context.loadPlanLimits })
  const withSecret = createSecretLock(common)
  const secrets = createSecretService({
    ...common,
    ...{ keyring, hostRules, insertSecret, withSecret, changes },
  })
  const grants = createGrantService({ withSecret, changes })
  const mounts = createBoxMountService({
    ...common,
    ...{ insertSecret, changes },
    getBrokerTest: boxVariables.getBrokerTest,
    whenSent: boxVariables.whenSent,
    waitForAgent: (boxId, ms) => tunnels.wait(boxId, ms),
  })
  const boxSecrets: BoxSecretHooks = createBoxSecrets({ clock, changes })
  return {
    services: {
      secretBroker: broker,
      secretUses: uses,
      boxSecrets,
      secrets,
      secretGrants: grants,
      secretMounts: mounts,
    },
    routes: [
      ...withTag('Secrets', secretRoutes({ secrets, grants })),
      ...withTag('Boxes', boxSecretRoutes({ mounts })),
    ],
    workspaceTables: [
      { table: 'secrets', key: 'id' },
      { table: 'secret_grants', key: 'id' },
      { table: 'secret_mounts', key: 'id' },
      { table: 'secret_uses', key: 'secret_id' },
    ],
    deleteOfBox: boxSecrets.deleteOfBox,
    restrictBox: boxSecrets.restrictBox,
    removeMember: boxSecrets.removeMember,
    sealedColumns: [{ table: 'secrets', id: 'id', value: 'value' }],
    close: { name: 'write the uses of secrets', run: uses.close },
  } satisfies Module
}
