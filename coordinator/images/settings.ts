// How many images the coordinator downloads: environment variables.
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'
import { integerOrZero, positiveInteger } from '../base/setting-schemas.ts'

export const IMAGE_SETTINGS = defineSettings({
  imageLimit: {
    variable: 'BOXWOOD_IMAGE_LIMIT',
    default: '100',
    description: 'images that the coordinator keeps in the engines after it has downloaded them',
    schema: positiveInteger,
  },
  imageGib: {
    variable: 'BOXWOOD_IMAGE_GIB',
    default: '0',
    description: 'GiB of these images, from which no further image is downloaded; 0: no limit',
    schema: integerOrZero,
  },
})

export type ImageSettings = SettingsOf<typeof IMAGE_SETTINGS>
