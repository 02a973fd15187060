// To which servers requests with secrets may be sent: environment variables.
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'
import { addressRanges } from '../base/setting-schemas.ts'

export const SECRET_SETTINGS = defineSettings({
  secretsPrivate: {
    variable: 'BOXWOOD_SECRETS_PRIVATE',
    default: '',
    shownDefault: 'none',
    description:
      'IP addresses and ranges that are not public, separated by commas, to which requests with secrets may be sent nevertheless, such as those of servers in your network',
    schema: addressRanges,
  },
})

export type SecretSettings = SettingsOf<typeof SECRET_SETTINGS>
