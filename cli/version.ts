// The version of the box command, which the coordinator is told with each request (spec §9).

export const CLI_VERSION = '0.1.0'
