// The version of the box command; each request to the coordinator carries it (spec §9).

export const CLI_VERSION = '0.1.0'
