/** A certificate for `shop.example` that signs itself, valid for a hundred years. For servers of tests alone. */
export const certificate = `-----BEGIN CERTIFICATE-----
MIIBnjCCAUSgAwIBAgIUR+8QJqsJg6SqRQiWnGqzPfO+A9QwCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMc2hvcC5leGFtcGxlMCAXDTI2MTEyODAzNTAzOFoYDzIxMjYx
MTA0MDM1MDM4WjAXMRUwEwYDVQQDDAxzaG9wLmV4YW1wbGUwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAARTyl9Qa34WoB1snrldefh2magWZfiSicRpQxmEEq5IQM2p
DrCVUIP160tT4+pmkZIOkCDdjc62BqTahjJX/tQ2o2wwajAdBgNVHQ4EFgQUcNyY
/6aqm4wBQUkTArUbwWkf7GkwHwYDVR0jBBgwFoAUcNyY/6aqm4wBQUkTArUbwWkf
7GkwDwYDVR0TAQH/BAUwAwEB/zAXBgNVHREEEDAOggxzaG9wLmV4YW1wbGUwCgYI
KoZIzj0EAwIDSAAwRQIgC989BEE7yHAUVHiyje4cnE8OMjdAu++IfjKH1k0oGicC
IQCwzw5ETRTvzH09M/CZ+eLMqORe/IXNxiZzeLlI8CeFRg==
-----END CERTIFICATE-----`;

export const privateKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQguk6pLvtkddrhZjwj
K8vvnW9uQoNQq3m0gSItJf7AGQahRANCAARTyl9Qa34WoB1snrldefh2magWZfiS
icRpQxmEEq5IQM2pDrCVUIP160tT4+pmkZIOkCDdjc62BqTahjJX/tQ2
-----END PRIVATE KEY-----`;
