#include "model/nnls.h"

#include <math.h>

void dt_nnls(const double *f, size_t n, size_t without, size_t terms, const double *ridge,
             double *a)
{
    double gram[DT_NNLS_TERMS][DT_NNLS_TERMS] = {{0}}, sum[DT_NNLS_TERMS] = {0};
    double length[DT_NNLS_TERMS];
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < terms && i != without; j++) {
            sum[j] += f[i * terms + j];
            for (size_t k = 0; k < terms; k++)
                gram[j][k] += f[i * terms + j] * f[i * terms + k];
        }
    }
    for (size_t j = 0; j < terms; j++) {
        length[j] = gram[j][j];
        gram[j][j] *= 1 + ridge[j];
        a[j] = 0;
    }
    for (int sweep = 0; sweep < 100; sweep++) {
        for (size_t j = 0; j < terms; j++) {
            double rest = sum[j];
            for (size_t k = 0; k < terms; k++)
                rest -= k != j ? gram[j][k] * a[k] : 0;
            a[j] = length[j] > 0 ? fmax(rest / gram[j][j], 0) : 0;
        }
    }
}
