// Whether tools for coding agents are served over HTTP: an environment variable.
import { defineSettings, type SettingsOf } from '../base/define-settings.ts'
import { onOff } from '../base/setting-schemas.ts'

export const MCP_SETTINGS = defineSettings({
  mcp: {
    variable: 'BOXWOOD_MCP',
    default: 'off',
    description: 'on or off; on serves boxes as [tools of a coding agent](mcp.md#over-http) at `/mcp`',
    schema: onOff,
  },
})
export type McpSettings = SettingsOf<typeof MCP_SETTINGS>
