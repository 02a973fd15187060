// How many machines are kept ready: an environment variable.
import { z } from 'zod'
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'

const MAX_SIZE = 20

export const WARM_MACHINE_SETTINGS = defineSettings({
  /** null: the coordinator chooses. */
  warm: {
    variable: 'BOXWOOD_WARM',
    default: 'auto',
    description: `machines per region that are started before a box needs them, so that a new box is there in an instant; 0 to ${MAX_SIZE}, or auto: 1 where at least 2 GiB of memory are available at the start, else 0`,
    schema: z
      .string()
      .regex(/^(?:auto|\d|1\d|20)$/, `must be auto, or an integer between 0 and ${MAX_SIZE}`)
      .transform((text) => (text === 'auto' ? null : Number(text))),
  },
})

export type WarmMachineSettings = SettingsOf<typeof WARM_MACHINE_SETTINGS>
