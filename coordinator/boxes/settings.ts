// How long boxes sleep, and what is kept of them: environment variables.
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'
import { integerOrZero, onOff, positiveInteger } from '../base/setting-schemas.ts'

export const BOX_SETTINGS = defineSettings({
  freezeMinutes: {
    variable: 'BOXWOOD_FREEZE_MINUTES',
    default: '60',
    description:
      'minutes that a suspended box stays frozen, with the memory of its processes, until it is stopped; 0: a suspend stops the box at once',
    schema: integerOrZero,
  },
  deepSleepDays: {
    variable: 'BOXWOOD_DEEP_SLEEP_DAYS',
    default: '14',
    description:
      'days that a box stays suspended until its files are packed into an archive, which frees its disk; 0: never',
    schema: integerOrZero,
  },
  deletedBoxDays: {
    variable: 'BOXWOOD_DELETED_BOX_DAYS',
    default: '30',
    description: 'days that a deleted box and its history stay readable',
    schema: positiveInteger,
  },
  snapshotLimit: {
    variable: 'BOXWOOD_SNAPSHOT_LIMIT',
    default: '100',
    description:
      'snapshots of a workspace that requests may create; failed ones and the copies that forks make do not count',
    schema: positiveInteger,
  },
  finalSnapshots: {
    variable: 'BOXWOOD_FINAL_SNAPSHOTS',
    default: 'off',
    description: 'on or off; on takes a snapshot of each box that is deleted',
    schema: onOff,
  },
})

export type BoxSettings = SettingsOf<typeof BOX_SETTINGS>
